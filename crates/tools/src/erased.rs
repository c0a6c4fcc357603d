//! Tools of any type behind one object type.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lorimer_protocol::{CallView, ContentBlock, ResultView, ToolSpec};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::ToolContext;
use crate::meta::Meta;
use crate::outcome::ToolError;
use crate::schema::schema_of;
use crate::tool::{Concurrency, DurableResult, PromptSection, Tool};

/// What a body produced: the canonical value and its projections.
#[derive(Clone, Debug, PartialEq)]
pub struct Produced {
    /// The canonical value, when the call wants it.
    pub value: Option<Value>,
    /// What the model is shown.
    pub content: Vec<ContentBlock>,
    /// What is stored for the card.
    pub meta: Option<Meta>,
}

/// A [`Tool`] whose argument and output types are hidden. Every tool becomes one when it is registered.
pub trait ErasedTool: Send + Sync {
    /// See [`Tool::name`].
    fn name(&self) -> &str;
    /// What the model is told.
    fn spec(&self) -> ToolSpec;
    /// JSON Schema of the arguments.
    fn parameters(&self) -> &Value;
    /// JSON Schema of the canonical value.
    fn output_schema(&self) -> &Value;
    /// See [`Tool::prompt`].
    fn prompt(&self) -> Option<PromptSection>;
    /// See [`Tool::timeout_ms`].
    fn timeout_ms(&self) -> Option<u64>;
    /// See [`Tool::concurrency`]; arguments of another shape, and a panic, are exclusive.
    fn concurrency(&self, arguments: &Value) -> Concurrency;
    /// Runs the body and renders its output. A panic is an error.
    fn run<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Produced, ToolError>>;
    /// Renders a value that a policy put in place of the body's.
    ///
    /// # Errors
    /// When the value does not have the output's shape.
    fn project(&self, arguments: &Value, value: Value) -> Result<Produced, ToolError>;
    /// See [`Tool::present_call`]; arguments of another shape, and a panic, have no view.
    fn present_call(&self, arguments: &Value) -> Option<CallView>;
    /// See [`Tool::present_result`]; arguments of another shape, and a panic, have no view.
    fn present_result(&self, arguments: &Value, result: DurableResult<'_>) -> Option<ResultView>;
}

/// Hides a tool's types.
pub(crate) fn erase<T: Tool>(tool: T) -> Arc<dyn ErasedTool> {
    Arc::new(Erased { parameters: schema_of::<T::Args>(), output: schema_of::<T::Output>(), tool })
}

struct Erased<T> {
    tool: T,
    parameters: Value,
    output: Value,
}

impl<T: Tool> Erased<T> {
    fn args(&self, arguments: &Value) -> Result<T::Args, ToolError> {
        from_value(arguments).map_err(|why| {
            ToolError::typed("ToolArgsError", "INVALID_ARGS", format!("invalid arguments: {why}"))
        })
    }

    fn produced(&self, args: &T::Args, output: &T::Output, wants_value: bool) -> Result<Produced, ToolError> {
        let value = wants_value.then(|| serde_json::to_value(output)).transpose();
        let value = value.map_err(|why| self.invalid_output(&why.to_string()))?;
        let projected = std::panic::catch_unwind(AssertUnwindSafe(|| {
            (self.tool.render(args, output), self.tool.presentation_meta(args, output))
        }));
        let (content, meta) = projected.map_err(|panic| {
            self.invalid_output(&format!("output.render failed: {}", panic_text(panic.as_ref())))
        })?;
        Ok(Produced { value, content, meta })
    }

    fn invalid_output(&self, why: &str) -> ToolError {
        let message = format!("tool \"{}\" returned invalid output: {why}", self.tool.name());
        ToolError::typed("ToolOutputError", "INVALID_TOOL_OUTPUT", message)
    }
}

impl<T: Tool> ErasedTool for Erased<T> {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.tool.name().to_owned(),
            description: self.tool.description(),
            parameters: self.parameters.clone(),
        }
    }

    fn parameters(&self) -> &Value {
        &self.parameters
    }

    fn output_schema(&self) -> &Value {
        &self.output
    }

    fn prompt(&self) -> Option<PromptSection> {
        self.tool.prompt()
    }

    fn timeout_ms(&self) -> Option<u64> {
        self.tool.timeout_ms()
    }

    fn concurrency(&self, arguments: &Value) -> Concurrency {
        let Ok(args) = self.args(arguments) else {
            return Concurrency::Exclusive;
        };
        std::panic::catch_unwind(AssertUnwindSafe(|| self.tool.concurrency(&args)))
            .unwrap_or(Concurrency::Exclusive)
    }

    fn run<'a>(
        &'a self,
        arguments: &'a Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<Produced, ToolError>> {
        Box::pin(async move {
            let args = self.args(arguments)?;
            let output = AssertUnwindSafe(self.tool.execute(&args, context))
                .catch_unwind()
                .await
                .unwrap_or_else(|panic| Err(panicked(self.tool.name(), panic.as_ref())))?;
            self.produced(&args, &output, context.wants_value)
        })
    }

    fn project(&self, arguments: &Value, value: Value) -> Result<Produced, ToolError> {
        let args = self.args(arguments)?;
        let output: T::Output = from_value(&value).map_err(|why| self.invalid_output(&why))?;
        self.produced(&args, &output, true)
    }

    fn present_call(&self, arguments: &Value) -> Option<CallView> {
        let args = self.args(arguments).ok()?;
        std::panic::catch_unwind(AssertUnwindSafe(|| self.tool.present_call(&args))).ok()?
    }

    fn present_result(&self, arguments: &Value, result: DurableResult<'_>) -> Option<ResultView> {
        let args = self.args(arguments).ok()?;
        std::panic::catch_unwind(AssertUnwindSafe(|| self.tool.present_result(&args, result))).ok()?
    }
}

fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| error.to_string())
}

fn panicked(name: &str, panic: &(dyn std::any::Any + Send)) -> ToolError {
    let message = format!("tool \"{name}\" failed unexpectedly: {}", panic_text(panic));
    ToolError::typed("ToolPanicError", "TOOL_PANIC", message)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}
