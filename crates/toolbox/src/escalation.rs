//! Asking a person for wider access, for one call (capabilities spec 4, core spec 5.8).

use futures_util::future::BoxFuture;
use lorimer_protocol::PermissionMode;
use lorimer_tools::{Policy, Refusals, ToolContext, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A mode that a call can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WiderMode {
    /// Files of the workspace and of temporary folders.
    WorkspaceWrite,
    /// Anything the person may.
    DangerFullAccess,
}

/// The tools whose calls can ask.
const TOOLS: [&str; 3] = ["bash", "write", "edit"];

/// What a denied call may do next; a line of its own after the denial. `subject` is `command` or `operation`.
pub(crate) fn offer(subject: &str) -> String {
    format!(
        "[sandbox: escalation available — retry this exact {subject} once with sandbox_permissions (the narrowest wider \
         mode that suffices) + justification; the approval prompt asks the user]"
    )
}

/// Puts a call's wish for wider access to a person. Without it a wish has no effect. Comes before other policies that ask.
#[derive(Clone, Copy, Debug)]
pub struct Escalation {
    /// Whether there is somebody to ask.
    pub can_ask: bool,
}

impl Policy for Escalation {
    fn before<'a>(&'a self, call: &'a ToolContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            if !TOOLS.contains(&call.name.as_str()) {
                return Verdict::Allow;
            }
            match wish(&call.arguments) {
                Ok(None) => Verdict::Allow,
                Ok(Some(wish)) => self.judge(call, &wish),
                Err(reason) => Verdict::Deny { reason: reason.to_owned() },
            }
        })
    }
}

struct Wish {
    mode: PermissionMode,
    justification: String,
}

fn wish(arguments: &Value) -> Result<Option<Wish>, &'static str> {
    let given = |name: &str| arguments.get(name).filter(|value| !value.is_null()).and_then(Value::as_str);
    match (given("sandbox_permissions"), given("justification")) {
        (None, None) => Ok(None),
        (Some(_), None) => Err("invalid escalation: sandbox_permissions requires a justification"),
        (None, Some(_)) => {
            Err("invalid escalation: justification is only valid together with sandbox_permissions")
        }
        (Some(_), Some(text)) if text.trim().is_empty() => {
            Err("invalid justification: expected a non-empty sentence")
        }
        (Some(mode), Some(text)) => {
            let mode = mode.parse().map_err(|_| "invalid escalation: sandbox_permissions is no mode")?;
            Ok(Some(Wish { mode, justification: text.to_owned() }))
        }
    }
}

impl Escalation {
    fn judge(self, call: &ToolContext, wish: &Wish) -> Verdict {
        let (wanted, current) = (wish.mode.as_str(), call.permission_mode());
        if wish.mode <= current {
            return Verdict::Deny {
                reason: format!(
                    "sandbox escalation to \"{wanted}\" is not strictly wider than this call's current \"{}\" mode",
                    current.as_str()
                ),
            };
        }
        let unavailable = format!(
            "sandbox escalation to \"{wanted}\" requires approval, but no approval channel is available"
        );
        if !self.can_ask {
            return Verdict::Deny { reason: unavailable };
        }
        let subject = if call.name == "bash" { "command" } else { "operation" };
        Verdict::Ask {
            reason: Some(format!("escalate sandbox to {wanted}: {}", wish.justification)),
            refusals: Some(Box::new(Refusals {
                rejected: format!("the user rejected escalating this {subject} to \"{wanted}\""),
                cancelled: format!("approval for escalating to \"{wanted}\" was cancelled"),
                unavailable,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wish_needs_both_parts() {
        let text = |arguments: Value| wish(&arguments).map(|wish| wish.map(|wish| wish.mode.as_str()));
        assert_eq!(text(json!({"command": "x", "justification": null})), Ok(None));
        assert_eq!(
            text(json!({"sandbox_permissions": "danger-full-access", "justification": "it installs"})),
            Ok(Some("danger-full-access"))
        );
        for (arguments, why) in [
            (json!({"sandbox_permissions": "danger-full-access"}), "requires a justification"),
            (json!({"justification": "why"}), "only valid together with"),
            (json!({"sandbox_permissions": "danger-full-access", "justification": " "}), "non-empty"),
        ] {
            assert!(text(arguments).expect_err("refused").contains(why), "{why}");
        }
    }
}
