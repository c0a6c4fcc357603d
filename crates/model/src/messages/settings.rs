//! Everything of a request but its messages: a pure function of the request and the provider's configuration.
//!
//! An effort is asked for in one of two ways ([`EffortStyle`]):
//! - by a budget of thinking tokens, which is kept below the output limit so that room for an answer is left. A limit
//!   too small for both goes without thinking, and thinking goes without a temperature, which excludes it;
//! - by name, in `output_config`, as DeepSeek takes it.

use lorimer_protocol::ToolSpec;
use serde::Serialize;
use serde_json::Value;

use crate::http::{EffortStyle, ProviderConfig, ThinkingMode};
use crate::{ModelError, ModelRequest};

/// Output limit in tokens when nothing names one; the protocol wants one.
const FALLBACK_MAX_TOKENS: u64 = 32_000;
/// Thinking budgets in tokens, by effort.
const BUDGETS: [(&str, u64); 4] = [("low", 2_048), ("medium", 8_192), ("high", 24_576), ("max", 60_000)];
/// The effort of a deployment that fixes thinking and names none.
const FIXED_EFFORT: &str = "medium";
/// Smallest budget that the API takes, in tokens.
const MIN_BUDGET_TOKENS: u64 = 1_024;
/// What a budget leaves for the answer, in tokens.
const ANSWER_TOKENS: u64 = 1_024;

const EPHEMERAL: CacheControl = CacheControl { r#type: "ephemeral" };

#[derive(Serialize)]
struct Settings<'a> {
    model: &'a str,
    stream: bool,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemBlock<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_sequences: Option<&'a [String]>,
}

#[derive(Serialize)]
struct SystemBlock<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
}

#[derive(Debug, PartialEq, Serialize)]
struct Thinking {
    r#type: ThinkingMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u64>,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: String,
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The `tools` array. The last tool is marked for the cache, and with it all of them.
pub(super) fn tools_json(tools: &[ToolSpec]) -> serde_json::Result<Vec<u8>> {
    let last = tools.len().saturating_sub(1);
    let wire: Vec<WireTool<'_>> = tools
        .iter()
        .enumerate()
        .map(|(at, tool)| WireTool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.parameters,
            cache_control: (at == last).then_some(EPHEMERAL),
        })
        .collect();
    serde_json::to_vec(&wire)
}

/// Every member of the body but `messages` and `tools`.
///
/// # Errors
/// [`ModelError::UnsupportedEffort`] when the provider does not offer the effort that is asked for.
pub(super) fn settings(request: &ModelRequest, config: &ProviderConfig) -> Result<Vec<u8>, ModelError> {
    let call = &request.config;
    let max_tokens = config.max_tokens_for(call).unwrap_or(FALLBACK_MAX_TOKENS);
    let effort = config.effort_for(call)?.map(|effort| effort.into_owned());
    let thinks = effort.as_deref().is_some_and(|effort| effort != "off");
    let (thinking, output_config) = match config.effort_style {
        EffortStyle::Budget => (budgeted(effort, max_tokens, request, config)?, None),
        EffortStyle::OutputConfig => {
            let mode = match &effort {
                None => config.thinking,
                Some(_) if thinks => Some(ThinkingMode::Enabled),
                Some(_) => Some(ThinkingMode::Disabled),
            };
            let thinking = mode.map(|mode| Thinking { r#type: mode, budget_tokens: None });
            (thinking, effort.filter(|_| thinks).map(|effort| OutputConfig { effort }))
        }
    };
    let fixes_temperature = thinking.as_ref().is_some_and(|thinking| thinking.budget_tokens.is_some());
    let system = request.system.as_deref().filter(|system| !system.trim().is_empty());
    let settings = Settings {
        model: &call.model,
        stream: true,
        max_tokens,
        system: system.map(|text| [SystemBlock { r#type: "text", text, cache_control: EPHEMERAL }]),
        thinking,
        output_config,
        temperature: call.temperature.filter(|degree| degree.is_finite() && !fixes_temperature),
        stop_sequences: call.stop.as_deref().filter(|stop| !stop.is_empty()),
    };
    serde_json::to_vec(&settings).map_err(|error| config.unwritable(&error))
}

fn budgeted(
    effort: Option<String>,
    max_tokens: u64,
    request: &ModelRequest,
    config: &ProviderConfig,
) -> Result<Option<Thinking>, ModelError> {
    let effort = match (effort, config.thinking) {
        (Some(effort), _) => effort,
        (None, Some(ThinkingMode::Enabled)) => FIXED_EFFORT.to_owned(),
        (None, Some(ThinkingMode::Disabled)) => "off".to_owned(),
        (None, None) => return Ok(None),
    };
    if effort == "off" {
        return Ok(Some(Thinking { r#type: ThinkingMode::Disabled, budget_tokens: None }));
    }
    let Some((_, wanted)) = BUDGETS.iter().find(|(id, _)| *id == effort) else {
        let offered = BUDGETS.iter().map(|(id, _)| (*id).to_owned()).collect();
        return Err(ModelError::UnsupportedEffort { model: request.config.model.clone(), effort, offered });
    };
    let budget = (*wanted).min(max_tokens.saturating_sub(ANSWER_TOKENS));
    Ok((budget >= MIN_BUDGET_TOKENS)
        .then_some(Thinking { r#type: ThinkingMode::Enabled, budget_tokens: Some(budget) }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::messages::{MessagesOverrides, anthropic};

    fn body(
        effort: Option<&str>,
        max_tokens: Option<u64>,
        config: &ProviderConfig,
    ) -> Result<Value, ModelError> {
        let mut request = ModelRequest::default();
        request.config.model = "m".into();
        request.config.reasoning_effort = effort.map(str::to_owned);
        request.config.max_tokens = max_tokens;
        request.config.temperature = Some(0.5);
        settings(&request, config).map(|json| serde_json::from_slice(&json).unwrap())
    }

    #[test]
    fn budgets_stay_below_the_output_limit() {
        let config = anthropic(|_| None, MessagesOverrides::default()).config().clone();
        let plain = body(None, None, &config).unwrap();
        assert_eq!(plain, json!({"model":"m","stream":true,"max_tokens":32000,"temperature":0.5}));
        let high = body(Some("high"), None, &config).unwrap();
        assert_eq!(high["thinking"], json!({"type":"enabled","budget_tokens":24576}));
        assert_eq!(high.get("temperature"), None);
        let tight = body(Some("high"), Some(4_000), &config).unwrap();
        assert_eq!(tight["thinking"]["budget_tokens"], 2_976);
        let tiny = body(Some("low"), Some(2_000), &config).unwrap();
        assert_eq!((tiny.get("thinking"), &tiny["temperature"]), (None, &json!(0.5)));
        assert_eq!(body(Some("off"), None, &config).unwrap()["thinking"], json!({"type":"disabled"}));
        assert_eq!(body(Some("huge"), None, &config).unwrap_err().code(), "UNSUPPORTED_REASONING_EFFORT");
    }

    #[test]
    fn efforts_by_name_go_into_output_config() {
        let mut config = ProviderConfig::new("d", "D", "http://h/anthropic");
        config.effort_style = EffortStyle::OutputConfig;
        config.efforts = ["off", "low", "high", "max"].map(str::to_owned).to_vec();
        config.effort = Some("high".to_owned());
        config.max_tokens = Some(256_000);
        let asked = body(None, None, &config).unwrap();
        assert_eq!(
            (&asked["thinking"], &asked["output_config"]),
            (&json!({"type":"enabled"}), &json!({"effort":"high"}))
        );
        assert_eq!(asked["max_tokens"], 256_000);
        let off = body(Some("off"), None, &config).unwrap();
        assert_eq!((&off["thinking"], off.get("output_config")), (&json!({"type":"disabled"}), None));
    }

    #[test]
    fn marks_the_last_tool_and_the_system_prompt() {
        let tool =
            |name: &str| ToolSpec { name: name.into(), description: "d".into(), parameters: json!({}) };
        let tools: Value = serde_json::from_slice(&tools_json(&[tool("a"), tool("b")]).unwrap()).unwrap();
        let expected = json!([
            {"name":"a","description":"d","input_schema":{}},
            {"name":"b","description":"d","input_schema":{},"cache_control":{"type":"ephemeral"}},
        ]);
        assert_eq!(tools, expected);
        let request = ModelRequest { system: Some("s".into()), ..ModelRequest::default() };
        let json = settings(&request, &ProviderConfig::new("p", "P", "http://h")).unwrap();
        let body: Value = serde_json::from_slice(&json).unwrap();
        let expected = json!([{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]);
        assert_eq!(body["system"], expected);
    }
}
