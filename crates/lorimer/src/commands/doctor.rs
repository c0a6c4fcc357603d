//! `lorimer doctor`: what works here, what does not, and what to do about it.

use std::path::Path;

use lorimer_sandbox::{Backend, Probe, Strength};

use crate::exit::{CommandError, Exit};
use crate::settings::{FILE_NAME, Settings};
use crate::surface::{StdoutWriter, safe_line};
use crate::trust::{WorkspaceConfig, workspace_config};
use crate::{home, routes, settings};

/// One thing that was looked at.
struct Finding {
    works: bool,
    what: String,
}

fn good(what: impl Into<String>) -> Finding {
    Finding { works: true, what: what.into() }
}

fn bad(what: impl Into<String>) -> Finding {
    Finding { works: false, what: what.into() }
}

/// Looks at everything a run needs and prints what it found. Nothing is changed but a test file in the home.
///
/// # Errors
/// When standard output cannot be written.
pub fn doctor() -> Result<Exit, CommandError> {
    let mut findings =
        vec![good(format!("lorimer {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS))];
    match home::home() {
        Ok(home) => {
            findings.push(home_is_writable(&home));
            findings.extend(configuration(&home));
        }
        Err(error) => findings.push(bad(error.message)),
    }
    findings.extend(programs());
    findings.extend(confinement());
    let out = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    for finding in &findings {
        let mark = if finding.works { "ok  " } else { "no  " };
        out.line(format!("{mark}{}", safe_line(&finding.what)));
    }
    out.finish_listing()
}

fn home_is_writable(home: &Path) -> Finding {
    // The nearest folder that exists has to take a new entry.
    let existing = home.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
    match tempfile_in(existing) {
        Ok(()) => good(format!("sessions are kept in {}", home.join("sessions").display())),
        Err(error) => bad(format!(
            "{} cannot be written: {error}; set LORIMER_HOME to a folder that can",
            existing.display()
        )),
    }
}

fn tempfile_in(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".lorimer-doctor-{}", std::process::id()));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)
}

fn configuration(home: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    let workspace = home::workspace(None).ok();
    let config = workspace.as_deref().map(|workspace| workspace_config(home, workspace, false));
    let mut trusted = None;
    match config {
        Some(WorkspaceConfig::Trusted(file)) => trusted = Some(file),
        Some(WorkspaceConfig::Untrusted(file)) => {
            findings
                .push(bad(format!("{} does not count; read it, then run `lorimer trust`", file.display())));
        }
        _ => {}
    }
    match settings::load(home, trusted.as_deref(), &[]) {
        Ok(settings) => {
            findings.push(good(format!("settings are in {}", home.join(FILE_NAME).display())));
            findings.extend(models(&settings, home));
        }
        Err(error) => findings.push(bad(error.to_string())),
    }
    findings
}

fn models(settings: &Settings, home: &Path) -> Vec<Finding> {
    let registry = match routes::providers(settings, home) {
        Ok(registry) => registry,
        Err(error) => return vec![bad(error.message)],
    };
    let mut findings = vec![match routes::route(&registry, &settings.model) {
        Ok((provider, model)) => match provider.missing() {
            None => good(format!("the model is {}/{model}", provider.id())),
            Some(missing) => bad(missing.to_string()),
        },
        Err(error) => bad(error.to_string()),
    }];
    for found in routes::probe(&routes::local_servers(settings)) {
        let first = found.models.first().map_or("MODEL", String::as_str);
        findings.push(good(format!("{} runs here: lorimer run -m {}/{first}", found.id, found.id)));
    }
    findings
}

fn programs() -> Vec<Finding> {
    ["bash", "git"]
        .map(|program| match find_in_path(program) {
            Some(path) => good(format!("{program} is {path}")),
            None => bad(format!("{program} is not in PATH; install it")),
        })
        .into()
}

/// Each way to confine commands, and whether one of them will do.
fn confinement() -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut one_works = false;
    for backend in Backend::of_this_system() {
        let probe = backend.probe();
        one_works |= matches!(probe, Probe::Works(_));
        findings.push(Finding {
            works: matches!(probe, Probe::Works(Strength::Full)),
            what: format!("confining commands with {backend} {probe}"),
        });
    }
    if !one_works {
        findings.push(bad(
            "commands run only with --permission-mode danger-full-access until one of these works",
        ));
    }
    findings
}

fn find_in_path(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())?;
    Some(found.display().to_string())
}
