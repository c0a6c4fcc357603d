//! The rows of the DeepSeek Harness that mean something here: what each of them holds, and which setting that is.

/// A row.
#[derive(Debug)]
pub struct Row {
    /// Its id.
    pub id: &'static str,
    /// The package that it mounts there.
    pub package: &'static str,
    /// The tools that it stands for; only such a row can be switched off.
    pub tools: &'static [&'static str],
    /// The fields of its `config`.
    pub fields: &'static [Field],
}

/// A field of a row's `config`.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it is here.
    pub meaning: Meaning,
}

/// What a field of a row's `config` is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A setting. A `config` that leaves it out brings back its default.
    Setting(&'static str),
    /// The setting of what may be changed. A `config` that leaves it out changes nothing about it.
    Permission,
    /// The half of the model before its first `/`.
    Provider,
    /// The other half of the model.
    Model,
    /// The folder that the agent works in, which the command line has chosen.
    Workspace,
    /// The table that names what each permission preset is.
    Presets,
    /// What is always so.
    Always(&'static str),
}

const fn field(name: &'static str, meaning: Meaning) -> Field {
    Field { name, meaning }
}

const fn setting(name: &'static str, key: &'static str) -> Field {
    Field { name, meaning: Meaning::Setting(key) }
}

/// The key of the setting of what may be changed.
pub const PERMISSION_KEY: &str = "permission_mode";
/// The key of the setting that names provider and model.
pub const MODEL_KEY: &str = "model";
/// The key of the setting of tools that are switched off.
pub const DISABLED_KEY: &str = "tools.disabled";

/// The rows, in the order in which they are printed.
pub const ROWS: [Row; 14] = [
    Row {
        id: "agent-default-model",
        package: "@deepseek-ai/dsh-agent-default-model",
        tools: &[],
        fields: &[
            field("provider", Meaning::Provider),
            field("model", Meaning::Model),
            setting("reasoningEffort", "effort"),
        ],
    },
    Row {
        id: "sandbox-policy",
        package: "@deepseek-ai/dsh-sandbox-policy",
        tools: &[],
        fields: &[field("mode", Meaning::Permission), field("workspaceRoot", Meaning::Workspace)],
    },
    Row {
        id: "approval",
        package: "@deepseek-ai/dsh-user-approval",
        tools: &[],
        fields: &[field("policy", Meaning::Always("ask"))],
    },
    Row {
        id: "permission",
        package: "@deepseek-ai/dsh-permission-presets",
        tools: &[],
        fields: &[field("defaultPreset", Meaning::Permission), field("presets", Meaning::Presets)],
    },
    Row { id: "tool-bash", package: "@deepseek-ai/dsh-tool-bash", tools: &["bash"], fields: &[] },
    Row {
        id: "tool-fs",
        package: "@deepseek-ai/dsh-tool-fs",
        tools: &["read", "write", "edit"],
        fields: &[],
    },
    Row {
        id: "tool-fs-search",
        package: "@deepseek-ai/dsh-tool-fs-search",
        tools: &["glob", "grep"],
        fields: &[setting("sampleOverCapGlobResults", "search.sample_over_cap_glob_results")],
    },
    Row {
        id: "agent-instructions",
        package: "@deepseek-ai/dsh-agent-instructions",
        tools: &[],
        fields: &[setting("maxBytes", "instructions.max_bytes")],
    },
    Row {
        id: "compaction-basic",
        package: "@deepseek-ai/dsh-compaction-basic",
        tools: &[],
        fields: &[setting("thresholdRatio", "context.prune_threshold_ratio")],
    },
    Row {
        id: "spill-policy",
        package: "@deepseek-ai/dsh-spill-policy",
        tools: &[],
        fields: &[setting("maxInlineBytes", "spill.max_inline_bytes")],
    },
    Row {
        id: "tool-result-pruner",
        package: "@deepseek-ai/dsh-compaction-tool-result-pruner",
        tools: &[],
        fields: &[
            setting("thresholdChars", "context.prune_threshold_chars"),
            setting("headChars", "context.prune_head_chars"),
            setting("tailChars", "context.prune_tail_chars"),
        ],
    },
    Row {
        id: "tool-todo",
        package: "@deepseek-ai/dsh-tool-todo",
        tools: &["todo_write"],
        fields: &[field("allowParallelInProgress", Meaning::Always("true"))],
    },
    Row {
        id: "tools",
        package: "@deepseek-ai/dsh-tools",
        tools: &[],
        fields: &[setting("mode", "tools_mode")],
    },
    Row {
        id: "llm-deepseek",
        package: "@deepseek-ai/dsh-llm-deepseek-api-key",
        tools: &[],
        fields: &[setting("apiKeyEnv", "deepseek.key_variable"), setting("baseURL", "deepseek.base_url")],
    },
];

/// Rows of tools that there are not here, by id and package: they are as good as switched off.
const ABSENT: [(&str, &str); 13] = [
    ("tool-goal", "@deepseek-ai/dsh-tool-goal"),
    ("tool-jobs", "@deepseek-ai/dsh-tool-jobs"),
    ("tool-plugin-manager", "@deepseek-ai/dsh-plugin-manager/tools"),
    ("tool-pwsh", "@deepseek-ai/dsh-tool-pwsh"),
    ("tool-skill", "@deepseek-ai/dsh-tool-skill"),
    ("tool-subagent", "@deepseek-ai/dsh-tool-subagent"),
    ("tool-subagent-control", "@deepseek-ai/dsh-tool-subagent-control"),
    ("tool-subagent-fork", "@deepseek-ai/dsh-tool-subagent"),
    ("tool-subagent-list-agents", "@deepseek-ai/dsh-tool-subagent-control/list-agents"),
    ("tool-web", "@deepseek-ai/dsh-tool-web"),
    ("tool-workflow", "@deepseek-ai/dsh-tool-workflow"),
    ("tool-working-directory", "@deepseek-ai/dsh-tool-working-directory"),
    ("workspace-dependencies", "@deepseek-ai/dsh-tool-workspace-dependencies"),
];

/// A row by its id, or by its package where there is no id.
pub fn find(id: Option<&str>, package: Option<&str>) -> Option<&'static Row> {
    ROWS.iter().find(|row| match id {
        Some(id) => row.id == id,
        None => Some(row.package) == package,
    })
}

/// The package of a row of a tool that there is not here.
pub fn package_of_absent(id: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(known, _)| *known == id).map(|(_, package)| *package)
}
