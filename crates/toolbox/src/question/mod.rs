//! The `ask_user_question` tool: questions to the person, as part of a turn (wire spec 5.5).

mod answers;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use lorimer_protocol::{CallId, CallView, ContentBlock, SessionId, ToolCallKind};
use lorimer_tools::{Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// How often a person's client may answer in a way that does not fit before the call fails.
const MAX_ATTEMPTS: u32 = 5;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Names the question in the answer; no two questions share one.
    pub id: String,
    /// The question itself.
    pub question: String,
    /// Two or three words over it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// What can be chosen; the person can always answer in words of their own instead. Left out: only words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<QuestionOption>>,
    /// Whether several options can be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_select: Option<bool>,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// What is chosen; no two options of a question share one.
    pub label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// One answer. Nothing selected and no words: the question was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The question.
    pub id: String,
    /// Labels of what was chosen.
    #[serde(default)]
    pub selected: Vec<String>,
    /// Words of the person's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<String>,
}

/// Arguments of `ask_user_question`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct AskUserQuestionArgs {
    /// The questions, in the order they are asked.
    questions: Vec<Question>,
}

/// What came back, in the order of the questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// One answer a question.
    pub answers: Vec<Answer>,
}

/// Questions on their way to a person.
#[derive(Clone, Debug)]
pub struct QuestionRequest {
    /// The session that asks.
    pub session_id: SessionId,
    /// The call.
    pub call_id: CallId,
    /// The questions.
    pub questions: Vec<Question>,
    /// Why the answer before this one did not fit.
    pub problem: Option<String>,
    /// Fires when the answer no longer matters.
    pub cancel: CancellationToken,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The person does not want to answer.
    Dismissed,
    /// There is nobody to ask.
    Unavailable,
}

/// Puts questions to a person.
pub trait Questioner: Send + Sync {
    /// Asks and waits, without a time limit.
    ///
    /// # Errors
    /// When there is no answer.
    fn ask(&self, request: QuestionRequest) -> BoxFuture<'_, Result<Vec<Answer>, Unanswered>>;
}

/// Lets the model ask the person.
pub struct AskUserQuestionTool {
    questioner: Arc<dyn Questioner>,
}

impl AskUserQuestionTool {
    /// A tool that asks through `questioner`.
    pub fn new(questioner: Arc<dyn Questioner>) -> Self {
        Self { questioner }
    }
}

impl Tool for AskUserQuestionTool {
    type Args = AskUserQuestionArgs;
    type Output = Answers;

    fn name(&self) -> &str {
        "ask_user_question"
    }

    fn description(&self) -> String {
        "Asks the user and waits for the answer. Use it when the work depends on a decision that only the user can \
         take and that nothing in the workspace settles. Ask everything that is open in one call, and offer the \
         likely answers as options."
            .to_owned()
    }

    async fn execute(&self, args: &AskUserQuestionArgs, context: &ToolContext) -> Result<Answers, ToolError> {
        answers::check_questions(&args.questions)?;
        let mut problem = None;
        for _ in 0..MAX_ATTEMPTS {
            let request = QuestionRequest {
                session_id: context.session.id().clone(),
                call_id: context.call_id.clone(),
                questions: args.questions.clone(),
                problem: problem.take(),
                cancel: context.cancel.clone(),
            };
            let asked = tokio::select! {
                biased;
                () = context.cancel.cancelled() => return Err(ToolError::aborted()),
                asked = self.questioner.ask(request) => asked,
            };
            let given = asked.map_err(unanswered)?;
            match answers::check_answers(&args.questions, &given) {
                Ok(()) => return Ok(Answers { answers: given }),
                Err(misfit) => problem = Some(misfit),
            }
        }
        Err(unanswered(Unanswered::Unavailable))
    }

    fn render(&self, _args: &AskUserQuestionArgs, output: &Answers) -> Vec<ContentBlock> {
        vec![ContentBlock::text(serde_json::to_string(output).unwrap_or_default())]
    }

    fn present_call(&self, args: &AskUserQuestionArgs) -> Option<CallView> {
        let title = match args.questions.as_slice() {
            [only] => only.question.clone(),
            several => format!("Ask {} questions", several.len()),
        };
        let kind = Some(ToolCallKind::Other);
        Some(CallView::Generic { title, kind, raw_input: None, content: None, locations: None })
    }
}

fn unanswered(why: Unanswered) -> ToolError {
    match why {
        Unanswered::Dismissed => {
            ToolError::typed("AskError", "ASK_CANCELLED", "the user did not want to answer")
        }
        Unanswered::Unavailable => ToolError::typed("AskError", "NO_PROVIDER", "there is nobody to ask"),
    }
}
