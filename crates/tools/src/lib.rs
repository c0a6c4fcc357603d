//! The [`Tool`] trait, the registry with its scopes, schema checks, the guarded pipeline and the parallel scheduler.
//!
//! A call passes, in this order: conversion and schema check → policies `before` (allow, deny, ask) → guards (deny
//! only) → policies `around` → the tool's body → render → policies `after` (accept, replace, block) → observers.
//!
//! What must hold:
//! - Every call ends in exactly one [`Outcome`], in model order, whatever the tool, a policy or the caller does. A
//!   panic in a tool is that call's error.
//! - A call is durable before its body runs, its result before the next request.
//! - The log keeps the raw argument text; policies and tools see the converted value.
//! - Nothing here knows a concrete tool.
//!
//! ```
//! use lorimer_tools::{Tool, ToolContext, ToolError};
//! use lorimer_protocol::ContentBlock;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// Counts the letters of a word.
//! struct Count;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct CountArgs {
//!     /// The word.
//!     word: String,
//! }
//!
//! #[derive(Serialize, Deserialize, JsonSchema)]
//! struct Counted {
//!     letters: u64,
//! }
//!
//! impl Tool for Count {
//!     type Args = CountArgs;
//!     type Output = Counted;
//!     fn name(&self) -> &str {
//!         "count"
//!     }
//!     fn description(&self) -> String {
//!         "Counts the letters of a word.".to_owned()
//!     }
//!     async fn execute(&self, args: &CountArgs, _context: &ToolContext) -> Result<Counted, ToolError> {
//!         Ok(Counted { letters: args.word.chars().count() as u64 })
//!     }
//!     fn render(&self, _args: &CountArgs, output: &Counted) -> Vec<ContentBlock> {
//!         vec![ContentBlock::text(format!("{} letters", output.letters))]
//!     }
//! }
//!
//! let mut registry = lorimer_tools::Registry::default();
//! registry.register(Count)?;
//! assert_eq!(registry.visible("any-agent").len(), 1);
//! # Ok::<(), lorimer_tools::RegistryError>(())
//! ```

mod approval;
mod context;
mod erased;
mod meta;
mod outcome;
mod pipeline;
mod policies;
mod policy;
mod registry;
mod scheduler;
mod schema;
mod tool;
mod validate;

pub use context::ToolContext;
pub use erased::{ErasedTool, Produced};
pub use meta::Meta;
pub use outcome::{Outcome, ToolError};
pub use pipeline::{CallRequest, Pipeline, PipelineBuilder};
pub use policies::{RepeatReminder, SpillPolicy};
pub use policy::{
    ApprovalAnswer, ApprovalRequest, Approver, Guard, Next, Observer, Policy, Refusals, Review, Verdict,
};
pub use registry::{Registry, RegistryError, Restriction};
pub use scheduler::{BatchEnd, Scheduler, SchedulerError, StepPlace};
pub use schema::{schema_of, unsupported_keywords};
pub use tool::{Concurrency, DurableResult, PromptSection, Tool};
pub use validate::{ArgumentCheck, check_arguments, check_value, parse_arguments};
