//! The append-only session log: appending, folding, derived messages, repair, and its files on disk.
//!
//! A session is one list of events plus a header. Everything else is derived from the list: [`Log`] is the fold,
//! [`Session`] appends to it and hands each event to a [`Journal`] that makes it durable, [`Store`] finds, creates,
//! opens and lists the logs of a home directory.
//!
//! What must hold:
//! - A log is never rewritten; a torn last line is copied aside before it is cut off.
//! - One writer a session, held by an OS lock that dies with its process.
//! - [`Session::flush`] returns only after everything appended before it is on disk.
//! - A log that cannot be interpreted with certainty opens read-only and says why.
//! - A fork, a repair or an import reads its origin without changing it, and is seen only when it is whole.
//! - Logs are read in either encoding, plain or in Zstandard frames; [`StoreOptions::compression`] is for new ones.
//! - Memory is bounded by what is still visible: the surface and the projections, not the events.
//!
//! ```
//! use lorimer_protocol::{Draft, Message, SessionHeader, Source};
//! use lorimer_session::Session;
//!
//! let session = Session::in_memory(SessionHeader::new("s1".into(), 0, Some("/w".into())));
//! session.append(Draft::new(&Message::user_text("m1", "hi", Source::user())).on_surface())?;
//! assert_eq!(session.with_log(|log| log.messages().count()), 1);
//! # Ok::<(), lorimer_session::AppendError>(())
//! ```

mod attachments;
mod fold;
mod invariants;
mod journal;
mod live;
mod store;

pub use attachments::Attachments;
pub use fold::{
    FoldError, Inbox, Log, PendingCall, ResultData, ResultParts, Surface, SurfaceNode, SurfaceNodeKind,
    TurnState, closers,
};
pub use invariants::{Violation, check_invariants};
pub use journal::{Journal, JournalError, MemoryJournal};
pub use live::{AppendError, Session};
pub use store::{
    Compression, Events, ForkError, ForkPoint, ImportError, Imported, Inspection, Open, OpenError, Problem,
    RepairError, Repaired, SessionSummary, Store, StoreError, StoreOptions, project_key,
};
