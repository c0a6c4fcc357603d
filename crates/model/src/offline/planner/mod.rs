//! The offline planner: a "model" that surveys the workspace with the read-only tools.
//!
//! It keeps nothing between replies. Each reply is worked out anew from the messages of the request: the
//! questions it has put so far (tool calls) and what came back (tool results) say what is known, and the first
//! step that still has a question to put decides the reply. When no step has one, the reply is the report.
//!
//! What must hold:
//! - **A reply is a pure function of the request.** No clock, no files, no state.
//! - **Every figure in the report comes from a tool result** of this conversation.
//! - **It ends.** No question is put twice, the number of questions is limited, and so is the number of replies.
//! - **No tool result can make it panic**, whatever is in it.

mod ignored;
mod inventory;
mod kinds;
mod limits;
mod places;
mod project;
mod question;
mod report;
mod results;
mod steps;
mod survey;
#[cfg(test)]
mod tests;
mod transcript;
mod unmeasured;
mod wording;

use crate::offline::PlannedTurn;
use crate::provider::ModelRequest;

use inventory::Inventory;
use survey::Survey;

/// Said when the survey was reported already and nobody asked anything since.
const NOTHING_TO_ADD: &str = "The survey above is complete; the offline planner has nothing to add.";

/// The next reply to `request`: more tool calls, or the report.
pub(crate) fn next_turn(request: &ModelRequest) -> PlannedTurn {
    let survey = Survey::of(request);
    if survey.reported {
        return closing(NOTHING_TO_ADD.to_owned());
    }
    let inventory = Inventory::of(&survey);
    let step = if survey.replies < limits::MAX_REPLIES { steps::next(&survey, &inventory) } else { None };
    step.unwrap_or_else(|| closing(report::write(&survey, &inventory)))
}

/// A reply that ends the turn.
fn closing(text: String) -> PlannedTurn {
    PlannedTurn { text, ..PlannedTurn::default() }
}
