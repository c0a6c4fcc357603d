//! Commands that no sandbox confines, put to a person.

use futures_util::future::BoxFuture;
use lorimer_protocol::PermissionMode;
use lorimer_tools::{Policy, ToolContext, Verdict};

/// Asks about every command outside `danger-full-access`. Only for a pipeline with somebody to ask: without this
/// policy such commands are refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct AskAboutCommands;

impl Policy for AskAboutCommands {
    fn before<'a>(&'a self, call: &'a ToolContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let mode = call.permission_mode();
            if call.name != super::NAME || mode == PermissionMode::DangerFullAccess {
                return Verdict::Allow;
            }
            let reason = format!(
                "commands cannot be confined to {} yet; this one runs with all your rights",
                mode.as_str()
            );
            Verdict::Ask { reason: Some(reason) }
        })
    }
}
