//! What every request sends beside its messages.

use lorimer_model::ModelInfo;
use lorimer_protocol::{AdapterDefaults, CallConfig, Extra, RequestHeader};
use lorimer_tools::Pipeline;
use serde_json::Value;

use crate::options::AgentOptions;
use crate::prompt::system_prompt;

/// What every request of this agent sends beside its messages. The same for the same settings, to the byte.
pub(crate) fn request_header(
    provider: &str,
    model: &ModelInfo,
    options: &AgentOptions,
    pipeline: &Pipeline,
    agent_id: &str,
) -> RequestHeader {
    let mut tools = pipeline.registry().visible(agent_id);
    tools.sort_by(|a, b| a.name().cmp(b.name()));
    let specs: Vec<Value> = tools.iter().filter_map(|tool| serde_json::to_value(tool.spec()).ok()).collect();
    let system = system_prompt(options, &tools);
    let defaults = AdapterDefaults {
        reasoning_effort: (options.reasoning_effort.is_none() && model.default_effort.is_some())
            .then_some(true),
        max_tokens: (options.max_tokens.is_none() && model.default_max_tokens.is_some()).then_some(true),
    };
    RequestHeader {
        config: CallConfig {
            provider: provider.to_owned(),
            model: model.id.clone(),
            reasoning_effort: options.reasoning_effort.clone().or_else(|| model.default_effort.clone()),
            temperature: options.temperature,
            max_tokens: options.max_tokens.or(model.default_max_tokens),
            stop: None,
            extra: Extra::new(),
        },
        adapter_defaults: (defaults != AdapterDefaults::default()).then_some(defaults),
        system: (!system.is_empty()).then_some(system),
        tools: (!specs.is_empty()).then_some(Value::Array(specs)),
        extra: Extra::new(),
    }
}
