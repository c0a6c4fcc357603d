//! What a tool is.

use std::future::Future;

use lorimer_protocol::{CallView, ContentBlock, ResultView};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::ToolContext;
use crate::meta::Meta;
use crate::outcome::ToolError;

/// Whether a call may overlap with its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// May run beside other parallel calls.
    Parallel,
    /// Runs alone, after everything before it and before everything after it.
    Exclusive,
}

/// A paragraph of the system prompt that is there when its tool is visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptSection {
    /// `tool:read`, ….
    pub name: String,
    /// Ascending order in the prompt (llm spec 9).
    pub order: i32,
    /// The paragraph.
    pub text: String,
}

/// What is durable of a result, the only input of [`Tool::present_result`] beside the arguments.
#[derive(Clone, Copy, Debug)]
pub struct DurableResult<'a> {
    /// The content the model was shown.
    pub content: &'a [ContentBlock],
    /// Whether the call failed.
    pub is_error: bool,
    /// What the tool stored for its card.
    pub meta: Option<&'a Value>,
}

/// Something a model may call.
///
/// One definition yields the JSON schemas, the prompt paragraph, the model-facing text, the stored meta and the
/// cards. `present_call` and `present_result` are pure functions of logged data: they are run live and on replay.
pub trait Tool: Send + Sync + 'static {
    /// The arguments. The schema the model sees is derived from this type.
    type Args: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// The canonical value. Programs in code mode get it; the model gets its rendering.
    type Output: Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// The name the model calls.
    fn name(&self) -> &str;

    /// What it does, for the model.
    fn description(&self) -> String;

    /// The tool's paragraph of the system prompt.
    fn prompt(&self) -> Option<PromptSection> {
        None
    }

    /// Longest run in milliseconds before the call fails with `TOOL_TIMEOUT`.
    fn timeout_ms(&self) -> Option<u64> {
        None
    }

    /// Whether this call may overlap with its neighbours.
    fn concurrency(&self, _args: &Self::Args) -> Concurrency {
        Concurrency::Exclusive
    }

    /// Runs the call. It is never abandoned: it must end soon after `context.cancel` fires.
    fn execute(
        &self,
        args: &Self::Args,
        context: &ToolContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// What the model is shown.
    fn render(&self, args: &Self::Args, output: &Self::Output) -> Vec<ContentBlock>;

    /// What is stored beside the result for its card. Kept only for calls that a model made directly.
    fn presentation_meta(&self, _args: &Self::Args, _output: &Self::Output) -> Option<Meta> {
        None
    }

    /// The card of the pending call.
    fn present_call(&self, _args: &Self::Args) -> Option<CallView> {
        None
    }

    /// The card of the result; `None` for the plain content.
    fn present_result(&self, _args: &Self::Args, _result: DurableResult<'_>) -> Option<ResultView> {
        None
    }
}
