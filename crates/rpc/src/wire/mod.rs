//! The protocol in types: what each method takes and gives (wire spec 1, wire-0.2). Everything that describes the
//! protocol, and the clients in `clients/`, is made from these.
//!
//! `initialize`, `session/prompt`, `session/resume`, `session/working-directory/*` and `shutdown` with their
//! notifications are DSH's; the rest is ours, and DSH's clients never see it.

mod notifications;
mod requests;
mod reverse;

pub use notifications::{RequestCancelled, SessionEventParams, SessionState, SessionStatusParams};
pub use requests::{
    CancelResult, ClientCapabilities, Delivery, Empty, ForkParams, ForkResult, InitializeParams,
    InitializeResult, ListParams, ListResult, ListedSession, PromptParams, PromptResult, RuntimeInfo,
    ServerInfo, SessionParams, SetWorkingDirectoryParams, WorkingDirectory,
};
pub use reverse::{ApprovalDecision, ApprovalParams, ApprovalResult, QuestionParams, QuestionResult};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request's method with its two types.
pub trait Method {
    /// As it is on the wire.
    const NAME: &'static str;
    /// What it takes.
    type Params: DeserializeOwned + JsonSchema;
    /// What it gives.
    type Result: Serialize + JsonSchema;
}

/// One method or notification, described.
#[derive(Debug)]
pub struct Described {
    /// As it is on the wire.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Schema of the parameters.
    pub params: Schema,
    /// Schema of the result; `None` for a notification.
    pub result: Option<Schema>,
}

macro_rules! methods {
    ($(#[$list_doc:meta])* $list:ident: $($name:literal $method:ident($params:ty) -> $result:ty = $about:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $about)]
            pub struct $method;

            impl Method for $method {
                const NAME: &'static str = $name;
                type Params = $params;
                type Result = $result;
            }
        )*

        $(#[$list_doc])*
        pub fn $list(params: &mut SchemaGenerator, results: &mut SchemaGenerator) -> Vec<Described> {
            vec![$(Described {
                name: $name,
                about: $about,
                params: params.subschema_for::<$params>(),
                result: Some(results.subschema_for::<$result>()),
            },)*]
        }
    };
}

methods! {
    /// The requests of a client, in the order of a session's life.
    requests:
    "initialize" Initialize(InitializeParams) -> InitializeResult
        = "Says where and with which model sessions of this process work. Comes first.";
    "session/prompt" Prompt(PromptParams) -> PromptResult
        = "Queues a message, and creates the session when its id is new. Answers before the work begins; events tell the rest.";
    "session/resume" Resume(SessionParams) -> Empty
        = "Opens a stored session without new input. An interrupted turn is closed first.";
    "session/working-directory/get" GetWorkingDirectory(SessionParams) -> WorkingDirectory
        = "Where relative paths and commands of a session start. Creates the session when its id is new.";
    "session/working-directory/set" SetWorkingDirectory(SetWorkingDirectoryParams) -> WorkingDirectory
        = "Lets a session work in another directory; permissions and running processes stay as they are.";
    "session/cancel" Cancel(SessionParams) -> CancelResult
        = "Ends the running turn of an open session and throws away what is queued; what was streamed is kept.";
    "session/close" Close(SessionParams) -> Empty
        = "Ends a session's work and gives its log free for others. It can be resumed.";
    "session/list" List(ListParams) -> ListResult
        = "Stored sessions, the newest activity first.";
    "session/fork" Fork(ForkParams) -> ForkResult
        = "A new stored session that begins like another one; resume it to go on. Its parent may be open.";
    "session/delete" Delete(SessionParams) -> Empty
        = "Deletes a stored session with all its files. One that is open here is closed first.";
    "shutdown" Shutdown(Empty) -> Empty
        = "Ends all sessions in an orderly way, answers, and ends the process.";
}

methods! {
    /// The requests of the server. Only a client that has declared in `initialize` that it answers them gets any.
    reverse_requests:
    "approval/request" RequestApproval(ApprovalParams) -> ApprovalResult
        = "Asks whether a call may run. An error, or an answer of another shape, is a no.";
    "question/ask" AskQuestion(QuestionParams) -> QuestionResult
        = "Puts questions of the model to the person. An error means that the person does not want to answer.";
}

/// The notifications of the server.
pub fn notifications(generator: &mut SchemaGenerator) -> Vec<Described> {
    let one = |name, about, params| Described { name, about, params, result: None };
    vec![
        one(
            notifications::SESSION_EVENT,
            "An event was appended to the log of a session.",
            generator.subschema_for::<SessionEventParams>(),
        ),
        one(
            notifications::SESSION_STATUS,
            "A session began to work, or has nothing left to do.",
            generator.subschema_for::<SessionStatusParams>(),
        ),
        one(
            notifications::REQUEST_CANCELLED,
            "A request of the server needs no answer any more.",
            generator.subschema_for::<RequestCancelled>(),
        ),
    ]
}

pub(crate) use notifications::{REQUEST_CANCELLED, SESSION_EVENT, SESSION_STATUS};
