//! A question to a person, with its two events in the log (capabilities spec 5).

use lorimer_protocol::{ApprovalAsked, ApprovalDecided, ApprovalOutcome, Draft};

use crate::policy::{ApprovalAnswer, ApprovalRequest, Approver};

/// Asks, and logs question and answer. A question that the log refuses is not asked, and an answer that it refuses
/// does not count.
pub(crate) async fn ask(approver: &dyn Approver, request: ApprovalRequest) -> ApprovalAnswer {
    let session = std::sync::Arc::clone(&request.session);
    let id = uuid::Uuid::new_v4().to_string();
    let asked = ApprovalAsked {
        id: id.clone(),
        tool_name: request.tool_name.clone(),
        call_id: Some(request.call_id.clone()),
        reason: request.reason.clone(),
    };
    if session.append(Draft::new(&asked)).is_err() {
        return ApprovalOutcome::Unavailable.into();
    }
    let cancel = request.cancel.clone();
    let answer = tokio::select! {
        biased;
        () = cancel.cancelled() => ApprovalOutcome::Cancelled.into(),
        answer = approver.ask(request) => answer,
    };
    match session.append(Draft::new(&ApprovalDecided { id, outcome: answer.outcome })) {
        Ok(_) => answer,
        Err(_) => ApprovalOutcome::Unavailable.into(),
    }
}
