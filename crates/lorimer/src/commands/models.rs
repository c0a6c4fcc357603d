//! `lorimer models`: what is configured, and what each provider needs.

use crate::cli::ModelsArgs;
use crate::compose;
use crate::exit::{CommandError, Exit};
use crate::surface::StdoutWriter;
use crate::{home, settings};

/// Prints providers with their models.
///
/// # Errors
/// When a setting cannot be used or standard output cannot be written.
pub fn models(args: &ModelsArgs) -> Result<Exit, CommandError> {
    let settings = settings::load(&home::home()?, &args.config)?;
    let registry = compose::providers(&settings);
    let out = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    out.line(format!("default: {}", settings.model));
    for provider in registry.iter() {
        let state = match provider.missing() {
            None => "ready".to_owned(),
            Some(missing) => missing.to_string(),
        };
        out.line(format!("\n{} ({}): {state}", provider.id(), provider.name()));
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
