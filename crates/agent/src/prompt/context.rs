//! The runtime context: volatile facts, given to the model as a message when they change (llm spec 9).

use std::path::{Path, PathBuf};

use lorimer_protocol::{Message, PermissionMode, Source};
use lorimer_session::{Log, Session, SurfaceNodeKind};
use serde_json::json;

use super::git::{GitState, git_state, git_state_in};
use super::local_time::local_date;
use super::own_folders::OwnFolders;
use crate::options::AgentOptions;

/// The source under which DSH's clients know these messages.
const PLUGIN: &str = "@deepseek-ai/dsh-system-prompt";
const HEADING: &str = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots.";

struct Section {
    name: &'static str,
    text: String,
}

/// A snapshot of the runtime context, when it differs from the last one that the model can still see.
pub(crate) fn snapshot_message(
    session: &Session,
    options: &AgentOptions,
    own: &mut OwnFolders<'_>,
) -> Option<Message> {
    let moved = session.with_log(|log| log.working_directory().map(PathBuf::from));
    let sections = sections(options, moved.as_deref(), own);
    let texts: Vec<&str> = sections.iter().map(|section| section.text.as_str()).collect();
    let text = format!("{HEADING}\n\n{}", texts.join("\n\n"));
    let told = session.with_log(|log| last_snapshot(log).is_some_and(|message| message.text() == text));
    if told {
        return None;
    }
    let listed: Vec<_> =
        sections.iter().map(|section| json!({"name": section.name, "text": section.text})).collect();
    let mut extra = lorimer_protocol::Extra::new();
    extra.insert("form".to_owned(), "snapshot".into());
    extra.insert("sections".to_owned(), listed.into());
    let source = Source::Plugin { plugin: PLUGIN.to_owned(), extra };
    Some(Message::user_text(uuid::Uuid::new_v4().to_string(), text, source))
}

fn last_snapshot(log: &Log) -> Option<&Message> {
    let said = log.surface().nodes().iter().rev().filter(|node| node.kind == SurfaceNodeKind::User);
    said.map(|node| node.message.as_ref()).find(|message| {
        matches!(&message.source, Source::Plugin { plugin, extra }
            if plugin == PLUGIN && extra.get("form").is_some_and(|form| form == "snapshot"))
    })
}

fn sections(options: &AgentOptions, moved: Option<&Path>, own: &mut OwnFolders<'_>) -> Vec<Section> {
    let mut sections = vec![Section { name: "environment", text: environment() }];
    let moved = moved.filter(|directory| *directory != options.cwd);
    if let Some(directory) = moved {
        let text = format!(
            "The working directory is now {}: relative paths and commands start there. The workspace, which the \
             permission mode speaks of, is still {}.",
            directory.display(),
            options.cwd.display()
        );
        sections.push(Section { name: "working-directory", text });
    }
    let state = moved.map_or_else(|| git_state_in(own), git_state);
    if let Some(state) = state {
        sections.push(Section { name: "git", text: git_text(&state) });
    }
    sections.push(Section { name: "sandbox:policy", text: permission_text(options) });
    sections
}

fn environment() -> String {
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "unknown".to_owned());
    let today = local_date();
    format!(
        "System: {} ({}). The user's shell: {shell}. Today's date: {today}.",
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

fn git_text(state: &GitState) -> String {
    let head = match (&state.branch, &state.detached_at) {
        (Some(branch), _) => format!("on branch {branch}"),
        (None, Some(commit)) => format!("with a detached head at {commit}"),
        (None, None) => "without a head".to_owned(),
    };
    let operation = state.operation.map(|name| format!("; a {name} is under way")).unwrap_or_default();
    format!("The working directory is in a git work tree at {}, {head}{operation}.", state.root.display())
}

fn permission_text(options: &AgentOptions) -> String {
    let mut text = match options.permission_mode {
        PermissionMode::ReadOnly => {
            "Permission mode: read-only. Files can be read and searched but not changed, by commands neither. Do not try; \
             describe the change instead."
        }
        PermissionMode::WorkspaceWrite => {
            "Permission mode: workspace-write. Files inside the working directory and temporary folders can be changed; \
             other files cannot, and commands are confined to the same: they write in the working directory and in \
             $TMPDIR, but not to hooks and configuration of git or to start-up files of shells."
        }
        PermissionMode::DangerFullAccess => {
            return "Permission mode: danger-full-access. File changes and commands are not confined.".to_owned();
        }
    }
    .to_owned();
    if !options.commands_have_network {
        text.push_str(" Commands have no network.");
    }
    if options.can_escalate {
        text.push_str(
            " When an access was denied and the task needs it, repeat the call once with `sandbox_permissions` and \
             `justification`: the user is asked.",
        );
    }
    text
}
