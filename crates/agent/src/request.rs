//! From log to request.

use std::sync::Arc;

use lorimer_model::ModelRequest;
use lorimer_session::Log;

/// The request that the log stands for; `None` before the first `request/header`.
///
/// Nothing else reaches the model: equal logs give equal requests, in this process or another.
pub fn build_request(log: &Log) -> Option<ModelRequest> {
    let header = log.request_header()?;
    Some(ModelRequest {
        config: header.config.clone(),
        system: header.system.clone(),
        tools: Arc::clone(log.tool_specs()),
        messages: log.messages().cloned().collect(),
        attachments: Arc::default(),
    })
}
