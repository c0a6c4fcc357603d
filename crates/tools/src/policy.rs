//! What may stand around a call.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use lorimer_protocol::{ApprovalOutcome, CallId, CallView, ContentBlock, Message};
use lorimer_session::Session;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::erased::Produced;
use crate::outcome::{Outcome, ToolError};

/// What a policy says before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing against it.
    Allow,
    /// No; the model reads the reason.
    Deny {
        /// Why.
        reason: String,
    },
    /// A person has to say yes. A later policy may still deny.
    Ask {
        /// Why.
        reason: Option<String>,
        /// What the model reads without a yes; `None` for texts that name the tool.
        refusals: Option<Box<Refusals>>,
    },
}

/// What the model reads when a question was not answered with yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The answer was no.
    pub rejected: String,
    /// The question was withdrawn.
    pub cancelled: String,
    /// There is nobody to ask.
    pub unavailable: String,
}

impl Refusals {
    /// Texts that name the tool.
    pub(crate) fn of_tool(name: &str) -> Self {
        Self {
            rejected: format!("the user rejected tool \"{name}\""),
            cancelled: format!("approval for tool \"{name}\" was cancelled"),
            unavailable: format!("tool \"{name}\" requires approval, but no approval channel is available"),
        }
    }
}

/// What a policy says after a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Review {
    /// The outcome stands; `contexts` are shown to the model at its next step, before those already there when
    /// `first` is set.
    Accept {
        /// Messages for the next step.
        contexts: Vec<Message>,
        /// Whether they go before the others.
        first: bool,
    },
    /// Other content in place of the rendered one.
    ReplaceContent(Vec<ContentBlock>),
    /// Another canonical value; it is checked and rendered again. Not for failures.
    ReplaceValue(Value),
    /// The result is withheld; the model reads the feedback as an error.
    Block {
        /// What the model reads.
        feedback: Vec<ContentBlock>,
        /// Messages for the next step.
        contexts: Vec<Message>,
    },
}

impl Review {
    /// The outcome stands as it is.
    pub fn accept() -> Self {
        Self::Accept { contexts: Vec::new(), first: false }
    }
}

/// One layer around every call. Policies are asked in the order of registration; `around` of the first is outermost.
pub trait Policy: Send + Sync {
    /// Before the call.
    fn before<'a>(&'a self, _call: &'a ToolContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async { Verdict::Allow })
    }

    /// Around the body.
    fn around<'a>(
        &'a self,
        _call: &'a ToolContext,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Produced, ToolError>> {
        next.run()
    }

    /// After the call, also after a failure.
    fn after<'a>(&'a self, _call: &'a ToolContext, _outcome: &'a Outcome) -> BoxFuture<'a, Review> {
        Box::pin(async { Review::accept() })
    }
}

/// The rest of the stack below a policy's `around`.
pub struct Next<'a>(pub(crate) Box<dyn FnOnce() -> BoxFuture<'a, Result<Produced, ToolError>> + Send + 'a>);

impl<'a> Next<'a> {
    /// Runs the rest of the stack.
    pub fn run(self) -> BoxFuture<'a, Result<Produced, ToolError>> {
        (self.0)()
    }
}

/// A last word before the body: it can only deny, and it is asked only about calls that policies allowed.
pub trait Guard: Send + Sync {
    /// The reason to deny.
    fn check(&self, call: &ToolContext) -> Option<String>;
}

/// Sees outcomes and cannot change them.
pub trait Observer: Send + Sync {
    /// A call has ended.
    fn observe(&self, call: &ToolContext, outcome: &Outcome);
}

/// A question to a person.
#[derive(Clone)]
pub struct ApprovalRequest {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub call_id: CallId,
    /// Why it is asked.
    pub reason: Option<String>,
    /// The converted arguments.
    pub arguments: Value,
    /// How the tool shows the call, when it does.
    pub view: Option<CallView>,
    /// The session that the call belongs to.
    pub session: Arc<Session>,
    /// Fires when the answer no longer matters.
    pub cancel: CancellationToken,
}

/// A person's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// How the question ended.
    pub outcome: ApprovalOutcome,
    /// What the person has to say to the model with a no.
    pub message: Option<String>,
}

impl From<ApprovalOutcome> for ApprovalAnswer {
    fn from(outcome: ApprovalOutcome) -> Self {
        Self { outcome, message: None }
    }
}

/// Puts questions to a person.
pub trait Approver: Send + Sync {
    /// Asks and waits. Question and answer are logged around it.
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer>;
}
