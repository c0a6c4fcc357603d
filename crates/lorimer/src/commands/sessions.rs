//! `lorimer sessions` and `lorimer fork`: what is stored, and what to do with it.

use std::path::Path;

use lorimer_protocol::{
    ContentBlock, Draft, Event, Payload, SessionId, SessionTitle, TitleSource, TurnEndReason,
};
use lorimer_session::{ForkError, ForkPoint, OpenError, SessionSummary, Store, StoreError};
use serde_json::json;

use crate::cli::{ForkArgs, SessionsCommand};
use crate::exit::{CommandError, Exit};
use crate::surface::{Progress, StdoutWriter, safe_for_stdout, safe_line, short_id};
use crate::{compose, home, settings};

/// Longest title, in bytes.
const MAX_TITLE_BYTES: usize = 80;
/// Longest piece of a result that `show` prints, in lines.
const SHOWN_RESULT_LINES: usize = 12;

/// Runs one of the session commands.
///
/// # Errors
/// When there is no such session, or it cannot be read or changed.
pub fn sessions(command: &SessionsCommand) -> Result<Exit, CommandError> {
    let home = home::home()?;
    let store = compose::store(&settings::load(&home, None, &[])?, &home);
    // An export writes the log's bytes itself: the writer of lines would hold standard output against it.
    if let SessionsCommand::Export { id, format: _ } = command {
        return export(&store, &store.resolve(id)?);
    }
    let out = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    match command {
        SessionsCommand::List { all, json } => list(&store, *all, *json, &out)?,
        SessionsCommand::Show { id } => show(&store, id, &out)?,
        SessionsCommand::Path { id } => {
            let id = store.resolve(id)?;
            out.line(store.path(&id)?.display().to_string());
        }
        SessionsCommand::Rename { id, title } => rename(&store, id, title)?,
        SessionsCommand::Repair { id } => repair(&store, id, &out)?,
        // Done above.
        SessionsCommand::Export { .. } => {}
        SessionsCommand::Import { path, directory } => import(&store, path, directory.as_deref(), &out)?,
        SessionsCommand::Delete { id } => {
            let id = store.resolve(id)?;
            store.delete(&id)?;
        }
    }
    out.finish_listing()
}

fn list(store: &Store, all: bool, as_json: bool, out: &StdoutWriter) -> Result<(), CommandError> {
    let sessions = if all { store.list() } else { store.list_of(&home::workspace(None)?) };
    if !all {
        for (path, _) in store.unreadable_of(&home::workspace(None)?) {
            let id = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            Progress::note(&format!(
                "session {id} is left out, because its header is damaged; see `lorimer sessions repair {id}`"
            ));
        }
    }
    if sessions.is_empty() && !as_json {
        let scope = if all { "" } else { " of this folder; see `lorimer sessions list --all`" };
        Progress::note(&format!("there are no sessions{scope}"));
    }
    for session in sessions {
        out.line(if as_json {
            json_row(&session)
        } else {
            safe_for_stdout(&row(&session, all)).into_owned()
        });
    }
    Ok(())
}

fn row(session: &SessionSummary, all: bool) -> String {
    let id = short_id(session.header.id.as_str());
    let title = safe_line(session.title.as_deref().unwrap_or("(untitled)"));
    let place = match (&session.header.cwd, all) {
        (Some(cwd), true) => format!("  {}", safe_line(cwd)),
        _ => String::new(),
    };
    format!("{id}  {:>7}  {title}{place}", age(session.updated_at))
}

fn json_row(session: &SessionSummary) -> String {
    json!({
        "id": session.header.id, "title": session.title, "cwd": session.header.cwd,
        "createdAt": session.header.created_at, "updatedAt": session.updated_at,
        "bytes": session.size_bytes, "path": session.path,
    })
    .to_string()
}

/// How long ago, in the largest unit that fits.
fn age(epoch_ms: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seconds = now.as_secs().saturating_sub(epoch_ms / 1000);
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn show(store: &Store, id: &str, out: &StdoutWriter) -> Result<(), CommandError> {
    let id = store.resolve(id)?;
    let events = store.events(&id)?;
    let header = events.header();
    let folder = header.cwd.as_deref().unwrap_or("no folder");
    out.line(safe_for_stdout(&format!("session {} in {folder}", header.id)).into_owned());
    for event in events {
        match event {
            Ok(event) => {
                if let Some(text) = transcript(&event) {
                    out.line(safe_for_stdout(&text).into_owned());
                }
            }
            Err(problem) => {
                Progress::note(&format!("the rest of the log cannot be shown: {problem}"));
                break;
            }
        }
    }
    Ok(())
}

/// What an event adds to a transcript.
fn transcript(event: &Event) -> Option<String> {
    match event.payload().ok()? {
        Payload::UserMessage(message) if message.source.kind() == "user" => {
            Some(format!("\n> {}", message.text().replace('\n', "\n> ")))
        }
        Payload::AssistantMessage(data) => Some(data.message.text())
            .filter(|text| !text.trim().is_empty())
            .map(|text| format!("\n{}", text.trim_end())),
        Payload::ToolCall(call) => Some(format!("\n• {} {}", call.name, call.arguments)),
        Payload::ToolResult(result) if event.surface_op == Some(lorimer_protocol::SurfaceOp::Append) => {
            let block = result.message.tool_result()?;
            let text: String = block.content.iter().filter_map(ContentBlock::as_text).collect();
            Some(indented(&text))
        }
        Payload::TurnEnd(end) => match end.reason {
            TurnEndReason::Completed => None,
            TurnEndReason::Error { error } => Some(format!("\n[failed: {} ({})]", error.message, error.code)),
            other => serde_json::to_value(&other)
                .ok()
                .map(|value| format!("\n[{}]", value["kind"].as_str().unwrap_or("ended"))),
        },
        _ => None,
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown: Vec<String> =
        lines.iter().take(SHOWN_RESULT_LINES).map(|line| format!("    {line}")).collect();
    if lines.len() > SHOWN_RESULT_LINES {
        shown.push(format!("    … {} more lines", lines.len() - SHOWN_RESULT_LINES));
    }
    shown.join("\n")
}

/// `lorimer fork`: a new session that begins with a part of another one.
///
/// # Errors
/// When there is no such session or turn.
pub fn fork(args: &ForkArgs) -> Result<Exit, CommandError> {
    let home = home::home()?;
    let store = compose::store(&settings::load(&home, None, &[])?, &home);
    let id = store.resolve(&args.id)?;
    let point = args.turn.map_or(ForkPoint::End, ForkPoint::Turn);
    let new = match store.fork(&id, point) {
        // A turn that is still running is not waited for.
        Err(ForkError::OpenTurn { turn, .. }) if args.turn.is_none() && turn > 1 => {
            Progress::note(&format!("turn {turn} has not ended; the fork goes on from turn {}", turn - 1));
            store.fork(&id, ForkPoint::Turn(turn - 1))
        }
        forked => forked,
    };
    let new = new.map_err(|error| CommandError::usage(error.to_string()))?;
    let out = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    out.line(new.to_string());
    out.finish_listing()
}

fn repair(store: &Store, id: &str, out: &StdoutWriter) -> Result<(), CommandError> {
    let id = store.resolve(id)?;
    let repaired =
        store.repair(&id, &home::workspace(None)?).map_err(|error| CommandError::usage(error.to_string()))?;
    Progress::note(&format!("{} events are kept; {}", repaired.kept_events, repaired.dropped));
    out.line(repaired.new_id.to_string());
    Ok(())
}

fn export(store: &Store, id: &SessionId) -> Result<Exit, CommandError> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match store.export(id, &mut out) {
        Ok(0) => Err(CommandError::failed("the log is empty")),
        Ok(_) => Ok(Exit::Completed),
        // A reader that has seen enough is no failure.
        Err(OpenError::Store(StoreError::Io(error))) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(Exit::Completed)
        }
        Err(OpenError::Store(StoreError::Io(error))) => {
            Err(CommandError::failed(format!("cannot write to standard output: {error}")))
        }
        Err(error) => Err(error.into()),
    }
}

fn import(
    store: &Store,
    path: &Path,
    directory: Option<&Path>,
    out: &StdoutWriter,
) -> Result<(), CommandError> {
    let directory = directory.map(|directory| home::workspace(Some(directory))).transpose()?;
    let imported =
        store.import(path, directory.as_deref()).map_err(|error| CommandError::usage(error.to_string()))?;
    Progress::note(&format!("{} events of a log of format {}", imported.events, imported.format));
    imported.notes.iter().for_each(|note| Progress::note(note));
    out.line(imported.id.to_string());
    Ok(())
}

fn rename(store: &Store, id: &str, title: &str) -> Result<(), CommandError> {
    let mut title = safe_line(title);
    title.truncate(title.floor_char_boundary(MAX_TITLE_BYTES));
    if title.is_empty() {
        return Err(CommandError::usage("a title needs at least one word"));
    }
    let opened = store.open(&store.resolve(id)?)?;
    let event = SessionTitle { title, message_seqs: Vec::new(), source: TitleSource::User };
    opened.session.append(Draft::new(&event)).map_err(|error| CommandError::failed(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| CommandError::failed(format!("cannot start: {error}")))?;
    runtime.block_on(opened.session.flush()).map_err(|error| CommandError::failed(error.to_string()))
}
