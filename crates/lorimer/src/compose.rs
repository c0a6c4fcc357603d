//! The composition root: the one place that knows every part.

use std::path::Path;
use std::sync::Arc;

use lorimer_agent::{Agent, AgentOptions, InstructionOptions};
use lorimer_model::{
    ChatOverrides, ModelError, OfflineProvider, Provider, Registry, RetryPolicy, split_route,
};
use lorimer_process::{Runner, Supervisor};
use lorimer_session::{Session, Store, StoreOptions};
use lorimer_toolbox::{
    BashOptions, BashTool, EditOptions, EditTool, GlobTool, GrepTool, ReadOptions, ReadTool, SearchOptions,
    TodoWriteTool, WriteOptions, WriteTool,
};
use lorimer_tools::{Pipeline, PipelineBuilder, RepeatReminder, SpillPolicy};

use crate::exit::CommandError;
use crate::settings::Settings;

/// The sessions of a home.
pub fn store(settings: &Settings, home: &Path) -> Store {
    let options = StoreOptions {
        write_delay_ms: settings.session_write_delay_ms,
        pack_chunks: settings.session_pack_chunks,
        sync: true,
    };
    Store::new(home, options)
}

/// Every provider there is, ready or not.
pub fn providers(settings: &Settings) -> Registry {
    let mut registry = Registry::new();
    let overrides = ChatOverrides {
        base_url: settings.deepseek_base_url.clone(),
        key_variable: settings.deepseek_key_variable.clone(),
        default_context_window: settings.request_context_window_tokens,
        idle_timeout_ms: Some(settings.request_idle_timeout_ms),
        content_timeout_ms: Some(settings.request_content_timeout_ms),
        connect_timeout_ms: Some(settings.request_connect_timeout_ms),
        ..ChatOverrides::default()
    };
    registry.add(Arc::new(lorimer_model::deepseek(|name| std::env::var(name).ok(), overrides)));
    registry.add(Arc::new(OfflineProvider::new()));
    registry
}

/// The provider and model id of a route; a route without a model takes the provider's first.
///
/// # Errors
/// When there is no such provider.
pub fn route(registry: &Registry, route: &str) -> Result<(Arc<dyn Provider>, String), ModelError> {
    let (name, model) = split_route(route);
    let provider = registry.get(name)?;
    let model = match model {
        Some(model) => model.to_owned(),
        None => provider.models().into_iter().next().map(|model| model.id).ok_or_else(|| {
            ModelError::UnknownModel {
                provider: provider.id().to_owned(),
                model: String::new(),
                nearest: None,
            }
        })?,
    };
    Ok((provider, model))
}

/// An agent on a session.
///
/// # Errors
/// When the model cannot be called, or a tool cannot be made.
pub fn agent(
    settings: &Settings,
    home: &Path,
    cwd: &Path,
    session: Arc<Session>,
) -> Result<Agent, CommandError> {
    let registry = providers(settings);
    let (provider, model) =
        route(&registry, &settings.model).map_err(|error| CommandError::usage(error.to_string()))?;
    let retry_policy = RetryPolicy {
        max_retries: u32::try_from(settings.retry_max_retries).unwrap_or(u32::MAX),
        initial_delay_ms: settings.retry_initial_delay_ms,
        max_delay_ms: settings.retry_max_delay_ms,
        max_retry_after_ms: settings.retry_max_retry_after_ms,
        ..provider.retry_policy()
    };
    let options = AgentOptions {
        reasoning_effort: settings.effort.clone(),
        max_tokens: settings.max_tokens,
        temperature: settings.temperature,
        max_parallel_tool_calls: to_usize(settings.max_parallel_tool_calls),
        max_steps: settings.max_steps,
        permission_mode: settings.permission_mode,
        instructions: InstructionOptions {
            home: Some(home.to_owned()),
            max_bytes: to_usize(settings.instructions_max_bytes),
            max_source_bytes: settings.instructions_max_source_bytes,
            candidates: settings.instructions_files.clone(),
            ..InstructionOptions::default()
        },
        retry_policy: Some(retry_policy),
        prune_threshold_ratio: settings.context_prune_threshold_ratio,
        prune_threshold_chars: to_usize(settings.context_prune_threshold_chars),
        prune_head_chars: to_usize(settings.context_prune_head_chars),
        prune_tail_chars: to_usize(settings.context_prune_tail_chars),
        ..AgentOptions::new(model, cwd.to_owned())
    };
    Ok(Agent::new(session, provider, pipeline(settings, cwd)?, options)?)
}

fn pipeline(settings: &Settings, cwd: &Path) -> Result<Pipeline, CommandError> {
    let internal =
        |error: &dyn std::fmt::Display| CommandError::failed(format!("cannot set up the tools: {error}"));
    let runner = Runner::new(Supervisor::this_program().map_err(|error| internal(&error))?);
    let mut tools = lorimer_tools::Registry::default();
    let search = search_options(settings);
    tools.register(ReadTool::new(read_options(settings))).map_err(|error| internal(&error))?;
    tools.register(WriteTool::new(write_options(settings))).map_err(|error| internal(&error))?;
    tools.register(EditTool::new(edit_options(settings))).map_err(|error| internal(&error))?;
    tools.register(GlobTool::new(search.clone())).map_err(|error| internal(&error))?;
    tools.register(GrepTool::new(search)).map_err(|error| internal(&error))?;
    tools.register(BashTool::new(bash_options(settings), runner)).map_err(|error| internal(&error))?;
    tools.register(TodoWriteTool).map_err(|error| internal(&error))?;
    // Spill comes last: it stores what the other policies left.
    Ok(PipelineBuilder::new(tools, cwd.to_owned())
        .policy(Arc::new(RepeatReminder::default()))
        .policy(Arc::new(SpillPolicy::new(to_usize(settings.spill_max_inline_bytes))))
        .build())
}

fn read_options(settings: &Settings) -> ReadOptions {
    ReadOptions {
        read_limit: to_usize(settings.files_read_limit_lines),
        read_max_line_length: to_usize(settings.files_read_max_line_length),
        read_max_bytes: to_usize(settings.files_read_max_bytes),
        ..ReadOptions::default()
    }
}

fn write_options(settings: &Settings) -> WriteOptions {
    WriteOptions { diff_basis_max_bytes: settings.files_diff_basis_max_bytes, ..WriteOptions::default() }
}

fn edit_options(settings: &Settings) -> EditOptions {
    EditOptions { diff_basis_max_bytes: settings.files_diff_basis_max_bytes, ..EditOptions::default() }
}

fn search_options(settings: &Settings) -> SearchOptions {
    SearchOptions {
        sample_over_cap_glob_results: settings.search_sample_over_cap_glob_results,
        glob_max_results: to_usize(settings.search_glob_max_results),
        grep_max_matches: to_usize(settings.search_grep_max_matches),
        grep_max_line_bytes: to_usize(settings.search_grep_max_line_bytes),
        raw_output_max_bytes: settings.search_raw_output_max_bytes,
        timeout_ms: settings.search_timeout_ms,
        ..SearchOptions::default()
    }
}

fn bash_options(settings: &Settings) -> BashOptions {
    BashOptions {
        timeout_ms: settings.bash_timeout_ms,
        max_timeout_ms: settings.bash_max_timeout_ms,
        grace_ms: settings.bash_grace_ms,
        head_bytes: to_usize(settings.bash_head_bytes),
        tail_bytes: to_usize(settings.bash_tail_bytes),
        spill_max_bytes: settings.bash_spill_max_bytes,
        allowed_variables: settings.bash_allowed_variables.clone(),
        ..BashOptions::default()
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
