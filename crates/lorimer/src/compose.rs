//! The composition root: the one place that knows every part.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lorimer_agent::{Agent, AgentOptions, DeniedPaths, InstructionOptions};
use lorimer_model::{Difference, Provider, REPLAY_ROUTE, RetryPolicy, split_route};
use lorimer_process::{Runner, Supervisor};
use lorimer_rpc::Channels;
use lorimer_session::{Compression, Session, Store, StoreOptions};
use lorimer_toolbox::{
    AskAboutCommands, AskUserQuestionTool, BashOptions, BashTool, Confinement, ConfinementOptions, DenyRules,
    EditOptions, EditTool, Escalation, GlobTool, GrepTool, ModeFence, ReadOptions, ReadTool, SearchOptions,
    TodoWriteTool, WriteFence, WriteOptions, WriteTool,
};
use lorimer_tools::{Pipeline, PipelineBuilder, RepeatReminder, SpillPolicy};

use crate::exit::CommandError;
use crate::routes;
use crate::settings::{Settings, nearest};

/// The sessions of a home.
pub fn store(settings: &Settings, home: &Path) -> Store {
    let options = StoreOptions {
        write_delay_ms: settings.session_write_delay_ms,
        pack_chunks: settings.session_pack_chunks,
        sync: true,
        compression: if settings.session_compression == "zstd" {
            Compression::Zstd
        } else {
            Compression::None
        },
    };
    Store::new(home, options)
}

/// An agent, and where a replay notes what differs.
pub struct Composed {
    /// The agent.
    pub agent: Agent,
    /// Filled while a recorded session is replayed.
    pub differences: Option<Arc<Mutex<Vec<Difference>>>>,
}

/// A provider and a model of it.
pub struct Chosen {
    /// The provider. It may miss a key.
    pub provider: Arc<dyn Provider>,
    /// Model id.
    pub model: String,
    differences: Option<Arc<Mutex<Vec<Difference>>>>,
}

impl Chosen {
    /// Makes sure that the provider can be called.
    ///
    /// # Errors
    /// When it misses a key; the text names servers of this machine that need none.
    pub fn require_ready(&self, settings: &Settings) -> Result<(), CommandError> {
        match self.provider.missing() {
            Some(missing) => {
                let code = missing.code();
                Err(CommandError::usage(format!("{missing}{}", offered_locally(settings))).with_code(code))
            }
            None => Ok(()),
        }
    }
}

/// The provider and model that the settings name.
///
/// # Errors
/// When there is no such provider or model.
pub fn choose(settings: &Settings, home: &Path) -> Result<Chosen, CommandError> {
    if let (REPLAY_ROUTE, Some(id)) = split_route(&settings.model) {
        let provider = routes::replay(&store(settings, home), id)?;
        let differences = Some(provider.differences());
        return Ok(Chosen { provider: Arc::new(provider), model: id.to_owned(), differences });
    }
    if split_route(&settings.model) == (REPLAY_ROUTE, None) {
        return Err(CommandError::usage(
            "a replay needs a session: -m replay/ID; see `lorimer sessions list`".to_owned(),
        ));
    }
    let registry = routes::providers(settings, home)?;
    let named = settings.model.as_str();
    let found = routes::first_local_model(settings, named);
    let (provider, model) = routes::route(&registry, found.as_deref().unwrap_or(named))?;
    Ok(Chosen { provider, model, differences: None })
}

/// An agent on a session, and who is asked when it needs a person.
///
/// # Errors
/// When the model cannot be used, or a tool cannot be made.
pub fn agent(
    chosen: Chosen,
    settings: &Settings,
    home: &Path,
    cwd: &Path,
    session: Arc<Session>,
    channels: &Channels,
) -> Result<Composed, CommandError> {
    let Chosen { provider, model, differences } = chosen;
    if settings.max_cost_usd.is_some() && provider.resolve(&model).is_ok_and(|info| info.prices.is_none()) {
        return Err(CommandError::usage(format!(
            "--max-cost needs prices, and {}/{model} has none; write price_input and price_output of the model in {}",
            provider.id(),
            home.join(crate::settings::FILE_NAME).display()
        )));
    }
    let retry_policy = RetryPolicy {
        max_retries: u32::try_from(settings.retry_max_retries).unwrap_or(u32::MAX),
        initial_delay_ms: settings.retry_initial_delay_ms,
        max_delay_ms: settings.retry_max_delay_ms,
        max_retry_after_ms: settings.retry_max_retry_after_ms,
        ..provider.retry_policy()
    };
    let deny = Arc::new(deny_rules(settings, home, cwd)?);
    let options = AgentOptions {
        reasoning_effort: settings.effort.clone(),
        max_tokens: settings.max_tokens,
        temperature: settings.temperature,
        max_parallel_tool_calls: to_usize(settings.max_parallel_tool_calls),
        max_steps: settings.max_steps,
        max_cost_usd: settings.max_cost_usd,
        append_system_prompt: settings.append_system_prompt.clone(),
        permission_mode: settings.permission_mode,
        commands_have_network: settings.sandbox_network,
        can_escalate: channels.approver.is_some(),
        instructions: InstructionOptions {
            home: Some(home.to_owned()),
            max_bytes: to_usize(settings.instructions_max_bytes),
            max_source_bytes: settings.instructions_max_source_bytes,
            candidates: settings.instructions_files.clone(),
            denied: denied_to_read(&deny),
            ..InstructionOptions::default()
        },
        retry_policy: Some(retry_policy),
        prune_threshold_ratio: settings.context_prune_threshold_ratio,
        prune_threshold_chars: to_usize(settings.context_prune_threshold_chars),
        prune_head_chars: to_usize(settings.context_prune_head_chars),
        prune_tail_chars: to_usize(settings.context_prune_tail_chars),
        ..AgentOptions::new(model, cwd.to_owned())
    };
    let pipeline = pipeline(settings, home, cwd, channels, &deny)?;
    let agent = Agent::new(session, provider, pipeline, options)?;
    Ok(Composed { agent, differences })
}

/// What no tool may touch: what the settings name, and stored keys. From commands keys are hidden without a rule.
fn deny_rules(settings: &Settings, home: &Path, cwd: &Path) -> Result<DenyRules, CommandError> {
    let keys = home.join(crate::credentials::FILE_NAME);
    let keys = std::fs::canonicalize(&keys).unwrap_or(keys);
    let literal: String = keys
        .to_string_lossy()
        .chars()
        .flat_map(|one| [Some('\\').filter(|_| "*?[]{}!\\".contains(one)), Some(one)])
        .flatten()
        .collect();
    let of_keys = ["read", "write", "edit", "glob", "grep"].map(|tool| format!("{tool}:{literal}"));
    let rules: Vec<String> = settings.deny.0.iter().cloned().chain(of_keys).collect();
    let person = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    DenyRules::parse(&rules, cwd, person.as_deref())
        .map_err(|why| CommandError::usage(format!("setting \"deny\": {why}")))
}

/// Instruction files are read for the model, so they are held to what it may read.
fn denied_to_read(deny: &Arc<DenyRules>) -> DeniedPaths {
    if deny.is_empty_for("read") {
        return DeniedPaths::default();
    }
    let deny = Arc::clone(deny);
    DeniedPaths::new(move |path| deny.denying("read", path).is_some())
}

/// Servers on this machine that could be used instead.
fn offered_locally(settings: &Settings) -> String {
    let found = routes::probe(&routes::local_servers(settings));
    let offers: Vec<String> = found
        .iter()
        .map(|server| match server.models.first() {
            Some(model) => format!("-m {}/{model}", server.id),
            None => format!("-m {}/MODEL", server.id),
        })
        .collect();
    if offers.is_empty() { String::new() } else { format!("; running here: {}", offers.join(", ")) }
}

fn pipeline(
    settings: &Settings,
    home: &Path,
    cwd: &Path,
    channels: &Channels,
    deny: &Arc<DenyRules>,
) -> Result<Pipeline, CommandError> {
    let unusable =
        |error: &dyn std::fmt::Display| CommandError::failed(format!("cannot set up the tools: {error}"));
    let runner = Runner::new(Supervisor::this_program().map_err(|error| unusable(&error))?);
    let confinement = Arc::new(Confinement::new(ConfinementOptions {
        deny: Arc::clone(deny),
        ..confinement_options(settings, home, channels)
    }));
    let files = Files { deny, home, channels };
    let mut tools =
        tools(settings, &files, runner, Arc::clone(&confinement)).map_err(|error| unusable(&error))?;
    if let Some(questioner) = &channels.questioner {
        let tool = AskUserQuestionTool::new(Arc::clone(questioner));
        tools.register(tool).map_err(|error| unusable(&error))?;
    }
    take_away(&mut tools, settings)?;
    let mut spill = SpillPolicy::new(to_usize(settings.spill_max_inline_bytes));
    if !settings.origins.contains_key("spill.max_inline_bytes") {
        spill = spill.with_limit_of("bash", bash_result_bytes(settings));
    }
    let mut builder = PipelineBuilder::new(tools, cwd.to_owned())
        .policy(Arc::new(Escalation { can_ask: channels.approver.is_some() }));
    if let Some(approver) = &channels.approver {
        builder = builder.approver(Arc::clone(approver)).policy(Arc::new(AskAboutCommands::new(confinement)));
    }
    // Spill comes last: it stores what the other policies left.
    Ok(builder.policy(Arc::new(RepeatReminder::default())).policy(Arc::new(spill)).without_values().build())
}

/// How commands are confined: Lorimer's own files stay as they are, and keys are not seen.
fn confinement_options(settings: &Settings, home: &Path, channels: &Channels) -> ConfinementOptions {
    ConfinementOptions {
        backend: settings.sandbox_backend.parse().unwrap_or_default(),
        network: settings.sandbox_network,
        read_only: vec![home.to_owned()],
        hidden: vec![home.join(crate::credentials::FILE_NAME)],
        can_escalate: channels.approver.is_some(),
        deny: Arc::default(),
    }
}

/// What the tools that touch files are held to.
struct Files<'a> {
    deny: &'a Arc<DenyRules>,
    home: &'a Path,
    channels: &'a Channels,
}

impl Files<'_> {
    fn deny(&self) -> Arc<DenyRules> {
        Arc::clone(self.deny)
    }

    /// A model must not change the settings, the logs and the instructions of the harness itself.
    fn fence(&self) -> Arc<dyn WriteFence> {
        ModeFence::protecting(vec![self.home.to_owned()], self.channels.approver.is_some())
    }
}

fn tools(
    settings: &Settings,
    files: &Files<'_>,
    runner: Runner,
    confinement: Arc<Confinement>,
) -> Result<lorimer_tools::Registry, lorimer_tools::RegistryError> {
    let mut tools = lorimer_tools::Registry::default();
    let search = SearchOptions { deny: files.deny(), ..search_options(settings) };
    tools.register(ReadTool::new(ReadOptions { deny: files.deny(), ..read_options(settings) }))?;
    tools.register(WriteTool::new(write_options(settings, files)))?;
    tools.register(EditTool::new(edit_options(settings, files)))?;
    tools.register(GlobTool::new(search.clone()))?;
    tools.register(GrepTool::new(search))?;
    tools.register(BashTool::new(bash_options(settings), runner, confinement))?;
    tools.register(TodoWriteTool)?;
    Ok(tools)
}

/// Leaves out the tools that the settings switch off.
fn take_away(tools: &mut lorimer_tools::Registry, settings: &Settings) -> Result<(), CommandError> {
    const KEY: &str = "tools.disabled";
    let all: Vec<String> = tools.visible("").iter().map(|tool| tool.name().to_owned()).collect();
    for name in &settings.tools_disabled {
        if !all.contains(name) {
            let place = settings.origins.get(KEY).map(|origin| format!(" {origin}")).unwrap_or_default();
            let hint = nearest(name, all.iter().map(String::as_str));
            let hint = hint.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
            let names = all.join(", ");
            return Err(CommandError::usage(format!(
                "setting \"{KEY}\"{place} names \"{name}\", and the tools are {names}{hint}"
            )));
        }
        tools.remove(name);
    }
    Ok(())
}

/// The most that a command's result comes to: both streams as far as they are kept, and the lines around them.
fn bash_result_bytes(settings: &Settings) -> usize {
    const LINES_AROUND_BYTES: usize = 16 * 1024;
    2 * (to_usize(settings.bash_head_bytes) + to_usize(settings.bash_tail_bytes)) + LINES_AROUND_BYTES
}

fn read_options(settings: &Settings) -> ReadOptions {
    ReadOptions {
        read_limit: to_usize(settings.files_read_limit_lines),
        read_max_line_length: to_usize(settings.files_read_max_line_length),
        read_max_bytes: to_usize(settings.files_read_max_bytes),
        ..ReadOptions::default()
    }
}

fn write_options(settings: &Settings, files: &Files<'_>) -> WriteOptions {
    let diff_basis_max_bytes = settings.files_diff_basis_max_bytes;
    WriteOptions { diff_basis_max_bytes, fence: files.fence(), deny: files.deny() }
}

fn edit_options(settings: &Settings, files: &Files<'_>) -> EditOptions {
    EditOptions {
        diff_basis_max_bytes: settings.files_diff_basis_max_bytes,
        fence: files.fence(),
        deny: files.deny(),
        ..EditOptions::default()
    }
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
        secret_variables: key_variables(settings),
        ..BashOptions::default()
    }
}

/// The variables that hold keys of providers.
fn key_variables(settings: &Settings) -> Vec<String> {
    let configured = routes::tables(settings).into_iter().filter_map(|(_, table)| table.key_variable);
    settings.deepseek_key_variable.iter().cloned().chain(configured).filter(|name| !name.is_empty()).collect()
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
