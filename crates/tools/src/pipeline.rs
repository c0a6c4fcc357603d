//! The guarded path of a call (core spec 3.4).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lorimer_protocol::{ApprovalOutcome, CallId, ContentBlock};
use lorimer_session::Session;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::approval;
use crate::context::ToolContext;
use crate::erased::{ErasedTool, Produced};
use crate::outcome::{Outcome, ToolError};
use crate::policy::{ApprovalRequest, Approver, Guard, Next, Observer, Policy, Refusals, Review, Verdict};
use crate::registry::Registry;
use crate::tool::Concurrency;
use crate::validate::{check_arguments, parse_arguments};

/// A call as it comes from a model or a program.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The call.
    pub call_id: CallId,
    /// The tool's name as it was written.
    pub name: String,
    /// The raw argument text.
    pub arguments: String,
}

/// Registry and everything that stands around a call.
pub struct Pipeline {
    registry: Registry,
    policies: Vec<Arc<dyn Policy>>,
    guards: Vec<Arc<dyn Guard>>,
    observers: Vec<Arc<dyn Observer>>,
    approver: Option<Arc<dyn Approver>>,
    cwd: PathBuf,
    keeps_values: bool,
}

/// Puts a [`Pipeline`] together.
pub struct PipelineBuilder(Pipeline);

impl PipelineBuilder {
    /// A pipeline of these tools in this workspace, with nothing around them.
    pub fn new(registry: Registry, cwd: PathBuf) -> Self {
        Self(Pipeline {
            registry,
            policies: Vec::new(),
            guards: Vec::new(),
            observers: Vec::new(),
            approver: None,
            cwd,
            keeps_values: true,
        })
    }

    /// Adds a policy inside those that are there.
    #[must_use]
    pub fn policy(mut self, policy: Arc<dyn Policy>) -> Self {
        self.0.policies.push(policy);
        self
    }

    /// Adds a guard.
    #[must_use]
    pub fn guard(mut self, guard: Arc<dyn Guard>) -> Self {
        self.0.guards.push(guard);
        self
    }

    /// Adds an observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.0.observers.push(observer);
        self
    }

    /// Sets who is asked.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.0.approver = Some(approver);
        self
    }

    /// Leaves out the canonical values of direct calls: for a pipeline whose policies and observers do not look at
    /// them.
    #[must_use]
    pub fn without_values(mut self) -> Self {
        self.0.keeps_values = false;
        self
    }

    /// The finished pipeline.
    pub fn build(self) -> Pipeline {
        self.0
    }
}

/// A call whose arguments were looked at.
pub(crate) struct Checked {
    tool: Option<Arc<dyn ErasedTool>>,
    arguments: Value,
    /// Why it cannot run.
    invalid: Option<ToolError>,
}

impl Checked {
    /// See [`Pipeline::concurrency`].
    pub fn concurrency(&self) -> Concurrency {
        match &self.tool {
            Some(tool) if self.invalid.is_none() => tool.concurrency(&self.arguments),
            _ => Concurrency::Exclusive,
        }
    }
}

/// A call that went through everything before its body.
pub(crate) struct Prepared {
    context: Arc<ToolContext>,
    tool: Option<Arc<dyn ErasedTool>>,
    /// Decided before the body; it does not run.
    decided: Option<Decided>,
}

enum Decided {
    /// Skips `after`.
    Final(ToolError),
    /// Goes through `after`.
    Denied(ToolError),
}

/// A call whose body has ended.
pub(crate) struct Ran {
    context: Arc<ToolContext>,
    tool: Option<Arc<dyn ErasedTool>>,
    result: Result<Produced, ToolError>,
    skips_after: bool,
}

impl Pipeline {
    /// The tools and their scopes.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether a call may overlap with its neighbours. Unknown tools and bad arguments are exclusive.
    pub fn concurrency(&self, agent_id: &str, request: &CallRequest) -> Concurrency {
        self.check(agent_id, request).concurrency()
    }

    /// The call's tool, and its arguments as the tool takes them.
    pub(crate) fn check(&self, agent_id: &str, request: &CallRequest) -> Checked {
        let tool = self.registry.find(agent_id, &request.name);
        let parsed = parse_arguments(&request.arguments);
        let (arguments, invalid) = match &tool {
            Some(tool) => {
                let check = check_arguments(tool.parameters(), parsed);
                let error = check.error();
                (check.arguments, error)
            }
            None => (parsed, Some(ToolError::unknown_tool(&request.name))),
        };
        Checked { tool, arguments, invalid }
    }

    /// Runs one call from end to end.
    pub async fn call(
        &self,
        request: &CallRequest,
        session: Arc<Session>,
        cancel: CancellationToken,
    ) -> Outcome {
        let checked = self.check(session.id().as_str(), request);
        let prepared = self.prepare(request, checked, session, cancel).await;
        let ran = self.run(prepared).await;
        self.finish(ran).await
    }

    /// Everything before the body. Bodies may overlap; this part runs in model order.
    pub(crate) async fn prepare(
        &self,
        request: &CallRequest,
        checked: Checked,
        session: Arc<Session>,
        cancel: CancellationToken,
    ) -> Prepared {
        let Checked { tool, arguments, invalid } = checked;
        let mut context = ToolContext::new(
            request.call_id.clone(),
            &request.name,
            arguments,
            session,
            &self.cwd,
            // A time limit ends this call alone.
            cancel.child_token(),
        );
        context.wants_value = self.keeps_values;
        let context = Arc::new(context);
        let decided = if context.cancel.is_cancelled() {
            Some(Decided::Final(ToolError::aborted_before_dispatch()))
        } else if let Some(error) = invalid {
            Some(Decided::Denied(error))
        } else {
            self.decide(&context, tool.as_deref()).await.map(Decided::Denied)
        };
        Prepared { context, tool, decided }
    }

    /// Policies, the person, guards; `None` lets the call run.
    async fn decide(&self, context: &Arc<ToolContext>, tool: Option<&dyn ErasedTool>) -> Option<ToolError> {
        let mut question = None;
        for policy in &self.policies {
            match policy.before(context).await {
                Verdict::Allow => {}
                Verdict::Deny { reason } => return Some(ToolError::plain(reason)),
                Verdict::Ask { reason, refusals } => question = question.or(Some((reason, refusals))),
            }
        }
        if let Some((reason, refusals)) = question
            && let Some(denied) = self.ask(context, tool, reason, refusals).await
        {
            return Some(denied);
        }
        if let Some(reason) = self.guards.iter().find_map(|guard| guard.check(context)) {
            return Some(ToolError::plain(reason));
        }
        context.cancel.is_cancelled().then(ToolError::aborted_before_dispatch)
    }

    async fn ask(
        &self,
        context: &ToolContext,
        tool: Option<&dyn ErasedTool>,
        reason: Option<String>,
        refusals: Option<Box<Refusals>>,
    ) -> Option<ToolError> {
        let name = &context.name;
        let Some(approver) = &self.approver else {
            let text =
                reason.unwrap_or_else(|| format!("tool \"{name}\" requires approval (not yet supported)"));
            return Some(ToolError::plain(text));
        };
        let request = ApprovalRequest {
            tool_name: name.clone(),
            call_id: context.call_id.clone(),
            reason,
            arguments: context.arguments.clone(),
            view: tool.and_then(|tool| tool.present_call(&context.arguments)),
            session: Arc::clone(&context.session),
            cancel: context.cancel.clone(),
        };
        let answer = approval::ask(approver.as_ref(), request).await;
        let refusals = refusals.map_or_else(|| Refusals::of_tool(name), |refusals| *refusals);
        match answer.outcome {
            ApprovalOutcome::AllowedOnce => {
                context.set_approved();
                None
            }
            _ if context.cancel.is_cancelled() => Some(ToolError::aborted_before_dispatch()),
            ApprovalOutcome::Rejected => {
                let said = answer.message.map(|message| format!(": {message}")).unwrap_or_default();
                Some(ToolError::plain(format!("{}{said}", refusals.rejected)))
            }
            ApprovalOutcome::Cancelled => Some(ToolError::plain(refusals.cancelled)),
            ApprovalOutcome::Unavailable => Some(ToolError::plain(refusals.unavailable)),
        }
    }

    /// The body with everything around it. It is awaited to its end, also after a cancel.
    pub(crate) async fn run(&self, prepared: Prepared) -> Ran {
        let Prepared { context, tool, decided } = prepared;
        let (result, skips_after) = match decided {
            Some(Decided::Final(error)) => (Err(error), true),
            Some(Decided::Denied(error)) => (Err(error), false),
            None if context.cancel.is_cancelled() => (Err(ToolError::aborted_before_dispatch()), false),
            None => match &tool {
                Some(tool) => (self.layer(0, &context, tool).await, false),
                None => (Err(ToolError::unknown_tool(&context.name)), false),
            },
        };
        let aborted = result.is_ok() && context.cancel.is_cancelled();
        let result = if aborted { Err(ToolError::aborted()) } else { result };
        Ran { context, tool, result, skips_after }
    }

    fn layer<'a>(
        &'a self,
        depth: usize,
        context: &'a ToolContext,
        tool: &'a Arc<dyn ErasedTool>,
    ) -> BoxFuture<'a, Result<Produced, ToolError>> {
        match self.policies.get(depth) {
            Some(policy) => {
                policy.around(context, Next(Box::new(move || self.layer(depth + 1, context, tool))))
            }
            None => Box::pin(bounded(tool.as_ref(), context)),
        }
    }

    /// Everything after the body, in model order.
    pub(crate) async fn finish(&self, ran: Ran) -> Outcome {
        let Ran { context, tool, result, skips_after } = ran;
        let mut outcome = match result {
            Ok(produced) => Outcome {
                content: produced.content,
                is_error: false,
                error: None,
                meta: produced.meta.filter(|_| context.parent.is_none()),
                value: produced.value,
                contexts: Vec::new(),
                concludes_turn: context.concludes_turn(),
            },
            Err(error) => Outcome::failed(&error),
        };
        outcome.contexts = context.take_deferred();
        if !skips_after {
            for policy in &self.policies {
                let review = policy.after(&context, &outcome).await;
                apply_review(&mut outcome, review, tool.as_deref(), &context.arguments);
            }
        }
        for observer in &self.observers {
            let watched = std::panic::AssertUnwindSafe(|| observer.observe(&context, &outcome));
            // An observer cannot change an outcome, not even by failing.
            let _ = std::panic::catch_unwind(watched);
        }
        outcome
    }
}

/// The body under the tool's own time limit. The body is told to end and awaited.
async fn bounded(tool: &dyn ErasedTool, context: &ToolContext) -> Result<Produced, ToolError> {
    let Some(timeout_ms) = tool.timeout_ms() else {
        return tool.run(&context.arguments, context).await;
    };
    let body = tool.run(&context.arguments, context);
    futures_util::pin_mut!(body);
    match tokio::time::timeout(Duration::from_millis(timeout_ms), &mut body).await {
        Ok(result) => result,
        Err(_) => {
            context.cancel.cancel();
            let _ = body.await;
            let message = format!("tool call timed out after {timeout_ms}ms");
            Err(ToolError::typed("ToolTimeoutError", "TOOL_TIMEOUT", message))
        }
    }
}

fn apply_review(outcome: &mut Outcome, review: Review, tool: Option<&dyn ErasedTool>, arguments: &Value) {
    match review {
        Review::Accept { contexts, first: true } => {
            outcome.contexts.splice(0..0, contexts);
        }
        Review::Accept { contexts, first: false } => outcome.contexts.extend(contexts),
        Review::ReplaceContent(content) => outcome.content = content,
        Review::ReplaceValue(value) => replace_value(outcome, value, tool, arguments),
        Review::Block { feedback, contexts } => {
            let text = if feedback.is_empty() {
                vec![ContentBlock::text("tool result blocked by post-execute policy")]
            } else {
                feedback
            };
            *outcome = Outcome {
                content: text,
                is_error: true,
                error: None,
                meta: None,
                value: None,
                contexts,
                concludes_turn: false,
            };
        }
    }
}

fn replace_value(outcome: &mut Outcome, value: Value, tool: Option<&dyn ErasedTool>, arguments: &Value) {
    let replaced = match tool {
        Some(tool) if !outcome.is_error => tool.project(arguments, value),
        _ => Err(ToolError::plain("tools/post-execute cannot replace the value of a failed result")),
    };
    match replaced {
        Ok(produced) => {
            outcome.content = produced.content;
            outcome.meta = produced.meta;
            outcome.value = produced.value;
        }
        Err(error) => {
            *outcome = Outcome { contexts: std::mem::take(&mut outcome.contexts), ..Outcome::failed(&error) }
        }
    }
}

/// Awaits a pipeline part and turns a panic of a policy into a final failure of the call.
pub(crate) async fn contained<T>(part: impl Future<Output = T>) -> Result<T, ToolError> {
    std::panic::AssertUnwindSafe(part).catch_unwind().await.map_err(|_| {
        ToolError::typed("PolicyPanicError", "POLICY_PANIC", "a policy around this call failed unexpectedly")
    })
}
