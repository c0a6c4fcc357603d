//! `lorimer models`: what is configured, and what each provider needs.

use crate::cli::ModelsArgs;
use crate::exit::{CommandError, Exit};
use crate::surface::{StdoutWriter, safe_line};
use crate::{home, routes};

use super::config::effective;

/// Prints providers with their models.
///
/// # Errors
/// When a setting cannot be used or standard output cannot be written.
pub fn models(args: &ModelsArgs) -> Result<Exit, CommandError> {
    let home = home::home()?;
    let settings = effective(&home, None, &args.config)?;
    let registry = routes::providers(&settings, &home)?;
    let local = routes::local_servers(&settings);
    let running = routes::probe(&local);
    let out = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    out.line(format!("default: {}", settings.model));
    for provider in registry.iter() {
        let found = running.iter().find(|found| found.id == provider.id());
        let state = match (provider.missing(), found) {
            (Some(missing), _) => missing.to_string(),
            (None, None) if local.iter().any(|(id, _)| id == provider.id()) => "not running here".to_owned(),
            (None, _) => "ready".to_owned(),
        };
        out.line(format!("\n{} ({}): {state}", provider.id(), provider.name()));
        for model in found.into_iter().flat_map(|found| &found.models) {
            out.line(format!("  {}/{}", provider.id(), safe_line(model)));
        }
        for model in provider.models() {
            let window =
                model.context_window.map(|tokens| format!(", window {tokens} tokens")).unwrap_or_default();
            let efforts = match (&model.default_effort, model.efforts.is_empty()) {
                (Some(default), false) => {
                    format!(", effort {} (default {default})", model.efforts.join(" | "))
                }
                _ => String::new(),
            };
            out.line(format!("  {}/{}{window}{efforts}", provider.id(), model.id));
        }
    }
    out.finish_listing()
}
