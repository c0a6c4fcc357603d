//! Every setting, once: key, type, default, meaning. Everything else about settings is derived from here.

use std::collections::BTreeMap;

use lorimer_protocol::PermissionMode;
use serde_json::{Value as Json, json};
use toml_edit::Value;

use super::added_up::AddedUp;
use super::origin::Origin;
use super::providers::ProviderTable;

/// What a setting's type takes, and how it is written.
pub trait SettingValue: Sized {
    /// `a whole number`, `text`, …, for error messages and listings.
    const WANTED: &'static str;

    /// JSON Schema of the type.
    fn schema() -> Json;

    /// Reads a TOML value; `None` when it does not fit.
    fn from_toml(value: &Value) -> Option<Self>;

    /// Reads plain text that is not TOML; `None` when it does not fit.
    fn from_text(_text: &str) -> Option<Self> {
        None
    }

    /// The value as TOML; `None` when it is unset.
    fn to_toml(&self) -> Option<Value>;

    /// The value when an earlier place has set `_before`.
    fn over(self, _before: &Self) -> Self {
        self
    }
}

impl SettingValue for u64 {
    const WANTED: &'static str = "a whole number, zero or more";
    fn schema() -> Json {
        json!({"type": "integer", "minimum": 0})
    }
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_integer().and_then(|number| u64::try_from(number).ok())
    }
    fn to_toml(&self) -> Option<Value> {
        i64::try_from(*self).ok().map(Value::from)
    }
}

impl SettingValue for f64 {
    const WANTED: &'static str = "a number";
    fn schema() -> Json {
        json!({"type": "number"})
    }
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
    }
    fn to_toml(&self) -> Option<Value> {
        Some(Value::from(*self))
    }
}

impl SettingValue for bool {
    const WANTED: &'static str = "true or false";
    fn schema() -> Json {
        json!({"type": "boolean"})
    }
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_bool()
    }
    fn to_toml(&self) -> Option<Value> {
        Some(Value::from(*self))
    }
}

impl SettingValue for String {
    const WANTED: &'static str = "text";
    fn schema() -> Json {
        json!({"type": "string"})
    }
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
    fn to_toml(&self) -> Option<Value> {
        Some(Value::from(self.as_str()))
    }
}

impl SettingValue for Vec<String> {
    const WANTED: &'static str = "a list of texts";
    fn schema() -> Json {
        json!({"type": "array", "items": {"type": "string"}})
    }
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    }
    fn from_text(text: &str) -> Option<Self> {
        if text.trim_start().starts_with('[') {
            return None;
        }
        Some(text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect())
    }
    fn to_toml(&self) -> Option<Value> {
        Some(Value::Array(self.iter().map(String::as_str).collect()))
    }
}

impl SettingValue for PermissionMode {
    const WANTED: &'static str = "read-only, workspace-write or danger-full-access";
    fn schema() -> Json {
        json!({"enum": ["read-only", "workspace-write", "danger-full-access"]})
    }
    fn from_toml(value: &Value) -> Option<Self> {
        value.as_str()?.parse().ok()
    }
    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn to_toml(&self) -> Option<Value> {
        Some(Value::from(self.as_str()))
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    const WANTED: &'static str = T::WANTED;
    fn schema() -> Json {
        T::schema()
    }
    fn from_toml(value: &Value) -> Option<Self> {
        T::from_toml(value).map(Some)
    }
    fn from_text(text: &str) -> Option<Self> {
        T::from_text(text).map(Some)
    }
    fn to_toml(&self) -> Option<Value> {
        self.as_ref().and_then(SettingValue::to_toml)
    }
}

/// A value that does not fit its setting.
pub struct Misfit {
    /// What the setting takes.
    pub wanted: &'static str,
}

/// What is known of a setting without its value.
pub struct Described {
    /// The key.
    pub key: &'static str,
    /// What it takes.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the settings page tells it"))]
    pub wanted: &'static str,
    /// JSON Schema of its type.
    pub schema: Json,
    /// The default as TOML; `None` for unset.
    pub default: Option<Value>,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

macro_rules! settings {
    ($($(#[doc = $doc:literal])* $key:literal => $field:ident: $kind:ty = $default:expr;)*) => {
        /// The settings of one run.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $doc])* pub $field: $kind,)*
            /// Providers of `[providers.NAME]` tables.
            pub providers: BTreeMap<String, ProviderTable>,
            /// Where values came from that are not defaults.
            pub origins: BTreeMap<String, Origin>,
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)* providers: BTreeMap::new(), origins: BTreeMap::new() }
            }
        }

        impl Settings {
            /// Every key.
            pub const KEYS: &'static [&'static str] = &[$($key,)*];

            /// Every setting without its value, in order.
            pub fn described() -> Vec<Described> {
                let defaults = Self::default();
                vec![$(Described {
                    key: $key,
                    wanted: <$kind as SettingValue>::WANTED,
                    schema: <$kind as SettingValue>::schema(),
                    default: defaults.$field.to_toml(),
                    meaning: concat!($($doc),*).trim_ascii(),
                },)*]
            }

            /// The value of a key as TOML: `None` for no such key, `Some(None)` for unset.
            pub fn get(&self, key: &str) -> Option<Option<Value>> {
                match key {
                    $($key => Some(self.$field.to_toml()),)*
                    _ => None,
                }
            }

            /// Brings back the default of a key; nothing happens when there is no such key.
            pub fn reset(&mut self, key: &str) {
                match key {
                    $($key => self.$field = $default,)*
                    _ => {}
                }
                self.origins.remove(key);
            }

            /// Sets one key; `None` when there is no such key.
            pub fn set(&mut self, key: &str, value: &Value, origin: Origin) -> Option<Result<(), Misfit>> {
                match key {
                    $($key => Some(match <$kind as SettingValue>::from_toml(value) {
                        Some(value) => {
                            self.$field = value.over(&self.$field);
                            self.origins.insert(key.to_owned(), origin);
                            Ok(())
                        }
                        None => Err(Misfit { wanted: <$kind as SettingValue>::WANTED }),
                    }),)*
                    _ => None,
                }
            }

            /// Sets one key from text that need not be TOML; `None` when there is no such key.
            pub fn set_text(&mut self, key: &str, text: &str, origin: Origin) -> Option<Result<(), Misfit>> {
                match key {
                    $($key => {
                        let parsed = text.parse::<Value>().ok().and_then(|value| <$kind>::from_toml(&value));
                        Some(match parsed.or_else(|| <$kind>::from_text(text)) {
                            Some(value) => {
                                self.$field = value.over(&self.$field);
                                self.origins.insert(key.to_owned(), origin);
                                Ok(())
                            }
                            None => Err(Misfit { wanted: <$kind as SettingValue>::WANTED }),
                        })
                    })*
                    _ => None,
                }
            }
        }
    };
}

settings! {
    /// Provider and model, split at the first `/`.
    "model" => model: String = "deepseek-official/deepseek-v4-flash".to_owned();
    /// Effort id; unset takes the model's default.
    "effort" => effort: Option<String> = None;
    /// Output limit in tokens; unset takes the model's default.
    "max_tokens" => max_tokens: Option<u64> = None;
    /// Sampling temperature; unset takes the provider's default.
    "temperature" => temperature: Option<f64> = None;
    /// Most steps of one turn; unset sets no limit.
    "max_steps" => max_steps: Option<u64> = None;
    /// What the agent may change.
    "permission_mode" => permission_mode: PermissionMode = PermissionMode::WorkspaceWrite;
    /// What no tool may touch, whatever is approved: `PATTERN` or `TOOL:PATTERN`, a pattern as in a `.gitignore` from the
    /// workspace on, or one that begins with `/` or `~/`. The lists of all places add up.
    "deny" => deny: AddedUp = AddedUp::default();
    /// Text that is added to the end of the system prompt.
    "append_system_prompt" => append_system_prompt: Option<String> = None;
    /// The turn ends when its replies have cost this much, in US dollars; needs a priced model.
    "max_cost_usd" => max_cost_usd: Option<f64> = None;
    /// How tools are shown to the model; this version has `native`.
    "tools_mode" => tools_mode: String = "native".to_owned();
    /// Tools that the model is not given, by name.
    "tools.disabled" => tools_disabled: Vec<String> = Vec::new();
    /// Most tool bodies at a time.
    "max_parallel_tool_calls" => max_parallel_tool_calls: u64 = 10;

    /// Base URL of the DeepSeek API; unset takes `DEEPSEEK_BASE_URL`, then the public one.
    "deepseek.base_url" => deepseek_base_url: Option<String> = None;
    /// The environment variable that holds the key.
    "deepseek.key_variable" => deepseek_key_variable: Option<String> = None;
    /// Longest wait for any byte of an answer, in milliseconds.
    "request.idle_timeout_ms" => request_idle_timeout_ms: u64 = 300_000;
    /// Longest wait for content of an answer while the server keeps the connection alive, in milliseconds.
    "request.content_timeout_ms" => request_content_timeout_ms: u64 = 1_200_000;
    /// Longest wait for a connection, in milliseconds.
    "request.connect_timeout_ms" => request_connect_timeout_ms: u64 = 30_000;
    /// Window of models that are not in the catalog, in tokens.
    "request.context_window_tokens" => request_context_window_tokens: Option<u64> = None;

    /// Most repeats of a failed request.
    "retry.max_retries" => retry_max_retries: u64 = 5;
    /// First wait before a repeat, in milliseconds; doubled each time.
    "retry.initial_delay_ms" => retry_initial_delay_ms: u64 = 500;
    /// Longest wait of our own before a repeat, in milliseconds.
    "retry.max_delay_ms" => retry_max_delay_ms: u64 = 10_000;
    /// Longest `Retry-After` of a server that is obeyed, in milliseconds.
    "retry.max_retry_after_ms" => retry_max_retry_after_ms: u64 = 120_000;

    /// Share of the window from which on old tool results are pruned, 0 to 1.
    "context.prune_threshold_ratio" => context_prune_threshold_ratio: f64 = 0.8;
    /// Results longer than this are pruned, in characters.
    "context.prune_threshold_chars" => context_prune_threshold_chars: u64 = 8192;
    /// What a pruned result keeps of its beginning, in characters.
    "context.prune_head_chars" => context_prune_head_chars: u64 = 4096;
    /// What a pruned result keeps of its end, in characters.
    "context.prune_tail_chars" => context_prune_tail_chars: u64 = 1024;

    /// Most bytes of all instruction files together.
    "instructions.max_bytes" => instructions_max_bytes: u64 = 65_536;
    /// Larger instruction files are skipped, in bytes.
    "instructions.max_source_bytes" => instructions_max_source_bytes: u64 = 1_048_576;
    /// File names that are taken as instructions in each folder.
    "instructions.files" => instructions_files: Vec<String> =
        ["AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md"].map(str::to_owned).to_vec();

    /// Results above this size are stored and replaced by their ends and a pointer, in bytes.
    "spill.max_inline_bytes" => spill_max_inline_bytes: u64 = 50_000;

    /// Most lines of one read.
    "files.read_limit_lines" => files_read_limit_lines: u64 = 2000;
    /// Longest line that is shown whole, in UTF-16 units.
    "files.read_max_line_length" => files_read_max_line_length: u64 = 2000;
    /// Most bytes of one read.
    "files.read_max_bytes" => files_read_max_bytes: u64 = 51_200;
    /// Changes of larger files have no diff, in bytes.
    "files.diff_basis_max_bytes" => files_diff_basis_max_bytes: u64 = 10 * 1024 * 1024;

    /// Whether an over-long glob result is sampled across folders.
    "search.sample_over_cap_glob_results" => search_sample_over_cap_glob_results: bool = true;
    /// Most paths of one glob.
    "search.glob_max_results" => search_glob_max_results: u64 = 100;
    /// Most matches of one grep.
    "search.grep_max_matches" => search_grep_max_matches: u64 = 250;
    /// Longest matching line that is shown whole, in bytes.
    "search.grep_max_line_bytes" => search_grep_max_line_bytes: u64 = 2000;
    /// Most raw results of one search, in bytes.
    "search.raw_output_max_bytes" => search_raw_output_max_bytes: u64 = 20_000_000;
    /// Longest search, in milliseconds.
    "search.timeout_ms" => search_timeout_ms: u64 = 30_000;

    /// Longest command when the model names no time, in milliseconds.
    "bash.timeout_ms" => bash_timeout_ms: u64 = 60_000;
    /// Longest command whatever the model asks for, in milliseconds.
    "bash.max_timeout_ms" => bash_max_timeout_ms: u64 = 600_000;
    /// How long a command may take to end after it was asked to, in milliseconds.
    "bash.grace_ms" => bash_grace_ms: u64 = 3000;
    /// What is kept of the start of each output stream, in bytes.
    "bash.head_bytes" => bash_head_bytes: u64 = 16_000;
    /// What is kept of the end of each output stream, in bytes.
    "bash.tail_bytes" => bash_tail_bytes: u64 = 48_000;
    /// Most of each output stream that is saved to a file, in bytes.
    "bash.spill_max_bytes" => bash_spill_max_bytes: u64 = 64 * 1024 * 1024;
    /// Variables that reach commands although their names look like secrets.
    "bash.allowed_variables" => bash_allowed_variables: Vec<String> = Vec::new();

    /// How commands are confined: `auto`, `landlock`, `bubblewrap` or `seatbelt`.
    "sandbox.backend" => sandbox_backend: String = "auto".to_owned();
    /// Whether confined commands have a network.
    "sandbox.network" => sandbox_network: bool = false;

    /// Longest wait of an event before it is written, in milliseconds.
    "session.write_delay_ms" => session_write_delay_ms: u64 = 200;
    /// Whether runs of streamed pieces are stored as packed rows.
    "session.pack_chunks" => session_pack_chunks: bool = true;
    /// How new logs are stored: `none` or `zstd`.
    "session.compression" => session_compression: String = "none".to_owned();

    /// How long piped input beside a task may stay silent before it is left out, in milliseconds.
    "run.stdin_wait_ms" => run_stdin_wait_ms: u64 = 3000;
    /// Most piped input, in bytes.
    "run.stdin_max_bytes" => run_stdin_max_bytes: u64 = 32 * 1024 * 1024;

    /// Longest line of a program that drives agents, in bytes.
    "rpc.max_frame_bytes" => rpc_max_frame_bytes: u64 = 64 * 1024 * 1024;
    /// Most bytes that wait for such a program while it does not read; its sessions stand still meanwhile.
    "rpc.max_queued_bytes" => rpc_max_queued_bytes: u64 = 8 * 1024 * 1024;
    /// How long a turn may take to end after a shutdown before its log is closed without it, in milliseconds.
    "rpc.shutdown_grace_ms" => rpc_shutdown_grace_ms: u64 = 500;
}
