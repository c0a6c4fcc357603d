//! Requests of ours to the client, and their answers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use lorimer_protocol::ApprovalOutcome;
use lorimer_toolbox::{Answer, QuestionRequest, Questioner, Unanswered};
use lorimer_tools::{ApprovalAnswer, ApprovalRequest, Approver};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::frame::RequestId;
use crate::outbox::Outbox;
use crate::wire::{
    ApprovalDecision, ApprovalParams, ApprovalResult, AskQuestion, Method, QuestionParams, QuestionResult,
    REQUEST_CANCELLED, RequestApproval, RequestCancelled,
};

type Answered = Result<Box<RawValue>, Box<RawValue>>;

/// Requests of ours that wait for an answer.
pub(crate) struct Reverse {
    outbox: Outbox,
    next: AtomicU64,
    waiting: Mutex<HashMap<String, oneshot::Sender<Answered>>>,
}

/// Why a request of ours has no usable answer.
enum Failed {
    /// The client answered with an error.
    Refused,
    /// It is gone, or its answer has another shape.
    Unusable,
}

impl Reverse {
    pub fn new(outbox: Outbox) -> Arc<Self> {
        Arc::new(Self { outbox, next: AtomicU64::new(1), waiting: Mutex::default() })
    }

    /// Takes an answer of the client. One that nobody waits for is dropped.
    pub fn answered(&self, id: &RequestId, answer: Answered) {
        let waiting = serde_json::from_str::<String>(id.get())
            .ok()
            .and_then(|id| self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    /// Ends all waiting: the client will not answer any more.
    pub fn give_up(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn request<M>(&self, params: &impl serde::Serialize) -> Result<M::Result, Failed>
    where
        M: Method,
        M::Result: DeserializeOwned,
    {
        let id = format!("lorimer-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), sender);
        let pending = Pending { reverse: self, id };
        self.outbox.request(&pending.id, M::NAME, params).await;
        match receiver.await {
            Ok(Ok(result)) => serde_json::from_str(result.get()).map_err(|_| Failed::Unusable),
            Ok(Err(_)) => Err(Failed::Refused),
            Err(_) => Err(Failed::Unusable),
        }
    }
}

/// A request that is on its way. Dropped before its answer, it tells the client that none is needed.
struct Pending<'a> {
    reverse: &'a Reverse,
    id: String,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let waited = self.reverse.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        if waited.is_some() {
            self.reverse.outbox.notify_now(REQUEST_CANCELLED, &RequestCancelled { id: self.id.clone() });
        }
    }
}

impl Approver for Reverse {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            let params = ApprovalParams {
                session_id: request.session.id().clone(),
                call_id: request.call_id,
                tool_name: request.tool_name,
                reason: request.reason,
                arguments: request.arguments,
                view: request.view,
            };
            match self.request::<RequestApproval>(&params).await {
                Ok(ApprovalResult { outcome: ApprovalDecision::AllowedOnce, .. }) => {
                    ApprovalOutcome::AllowedOnce.into()
                }
                Ok(ApprovalResult { outcome: ApprovalDecision::Rejected, message }) => {
                    ApprovalAnswer { outcome: ApprovalOutcome::Rejected, message }
                }
                Err(Failed::Refused | Failed::Unusable) => ApprovalOutcome::Unavailable.into(),
            }
        })
    }
}

impl Questioner for Reverse {
    fn ask(&self, request: QuestionRequest) -> BoxFuture<'_, Result<Vec<Answer>, Unanswered>> {
        Box::pin(async move {
            let params = QuestionParams {
                session_id: request.session_id,
                call_id: request.call_id,
                questions: request.questions,
                problem: request.problem,
            };
            match self.request::<AskQuestion>(&params).await {
                Ok(QuestionResult { answers }) => Ok(answers),
                Err(Failed::Refused) => Err(Unanswered::Dismissed),
                Err(Failed::Unusable) => Err(Unanswered::Unavailable),
            }
        })
    }
}
