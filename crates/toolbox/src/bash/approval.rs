//! Commands that no sandbox confines, put to a person.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use lorimer_protocol::PermissionMode;
use lorimer_tools::{Policy, ToolContext, Verdict};

use super::confinement::Confinement;

/// Asks about every command outside `danger-full-access` where none can be confined. Only for a pipeline with somebody
/// to ask: without this policy such commands are refused.
#[derive(Clone, Debug)]
pub struct AskAboutCommands(Arc<Confinement>);

impl AskAboutCommands {
    /// Asks where `confinement` has nothing that works.
    pub fn new(confinement: Arc<Confinement>) -> Self {
        Self(confinement)
    }
}

impl Policy for AskAboutCommands {
    fn before<'a>(&'a self, call: &'a ToolContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let mode = call.permission_mode();
            if call.name != super::NAME
                || mode == PermissionMode::DangerFullAccess
                || self.0.sandbox().is_ok()
            {
                return Verdict::Allow;
            }
            let reason = format!(
                "commands cannot be confined to {} here; this one runs with all your rights",
                mode.as_str()
            );
            Verdict::Ask { reason: Some(reason), refusals: None }
        })
    }
}
