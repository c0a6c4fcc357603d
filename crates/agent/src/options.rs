//! The loop's settings.

use std::path::PathBuf;

use lorimer_model::RetryPolicy;
use lorimer_protocol::PermissionMode;

use crate::prompt::InstructionOptions;

/// The loop's settings. Units are in the names; defaults are those of the documentation.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Model id at the provider.
    pub model: String,
    /// Effort id; `None` for the model's default.
    pub reasoning_effort: Option<String>,
    /// Output limit in tokens; `None` for the model's default.
    pub max_tokens: Option<u64>,
    /// Sampling temperature; `None` for the provider's default.
    pub temperature: Option<f64>,
    /// Most tool bodies at a time.
    pub max_parallel_tool_calls: usize,
    /// Most steps of one turn; `None` for no limit.
    pub max_steps: Option<u64>,
    /// What the replies of one turn may cost, in US dollars; needs a model with prices.
    pub max_cost_usd: Option<f64>,
    /// What the agent may change.
    pub permission_mode: PermissionMode,
    /// Whether confined commands have a network; the model is told.
    pub commands_have_network: bool,
    /// Whether the model can ask a person for wider access; it is told how.
    pub can_escalate: bool,
    /// The workspace, an absolute path.
    pub cwd: PathBuf,
    /// Where instruction files are looked for.
    pub instructions: InstructionOptions,
    /// Text at the end of the system prompt.
    pub append_system_prompt: Option<String>,
    /// How failed requests are repeated; `None` for the provider's own policy.
    pub retry_policy: Option<RetryPolicy>,
    /// Share of the model's window from which on the oldest tool results are pruned, 0 to 1.
    pub prune_threshold_ratio: f64,
    /// Results longer than this are pruned, in characters.
    pub prune_threshold_chars: usize,
    /// What a pruned result keeps of its beginning, in characters.
    pub prune_head_chars: usize,
    /// What a pruned result keeps of its end, in characters.
    pub prune_tail_chars: usize,
}

impl AgentOptions {
    /// The defaults for a model in a workspace.
    pub fn new(model: impl Into<String>, cwd: PathBuf) -> Self {
        Self {
            model: model.into(),
            reasoning_effort: None,
            max_tokens: None,
            temperature: None,
            max_parallel_tool_calls: 10,
            max_steps: None,
            max_cost_usd: None,
            permission_mode: PermissionMode::default(),
            commands_have_network: false,
            can_escalate: false,
            cwd,
            instructions: InstructionOptions::default(),
            append_system_prompt: None,
            retry_policy: None,
            prune_threshold_ratio: 0.8,
            prune_threshold_chars: 8192,
            prune_head_chars: 4096,
            prune_tail_chars: 1024,
        }
    }
}
