//! The variables of the DeepSeek Harness that are settings here.

use std::ffi::OsString;

use super::rows::PERMISSION_KEY;
use crate::exit::CommandError;
use crate::settings::{Origin, Settings, SettingsError};

/// The key of the setting of how tools are shown.
const TOOLS_MODE_KEY: &str = "tools_mode";
/// What it can be in principle.
const TOOLS_MODES: [&str; 4] = ["native", "ptc", "code", "both"];

/// Applies the variables; an empty one counts as none.
///
/// # Errors
/// When one has a value that it cannot have.
pub fn apply(
    settings: &mut Settings,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(), SettingsError> {
    let names = [("DSH_PERMISSION_MODE", PERMISSION_KEY), ("DSH_TOOLS_MODE", TOOLS_MODE_KEY)];
    for (name, key) in names {
        let Some(value) = variable(name).filter(|value| !value.is_empty()) else {
            continue;
        };
        let origin = Origin::Environment(name.to_owned());
        let place = origin.to_string();
        let misfit =
            |wanted: String| SettingsError::WrongType { key: key.to_owned(), place: place.clone(), wanted };
        let value = value.to_string_lossy();
        if key == TOOLS_MODE_KEY && !TOOLS_MODES.contains(&value.as_ref()) {
            return Err(misfit(alternatives(&TOOLS_MODES)));
        }
        if let Some(Err(wrong)) = settings.set_text(key, &value, origin) {
            return Err(misfit(wrong.wanted.to_owned()));
        }
    }
    Ok(())
}

/// Whether this version can show tools as the settings ask.
///
/// # Errors
/// When it cannot.
pub fn check_tools_mode(settings: &Settings) -> Result<(), CommandError> {
    let mode = settings.tools_mode.as_str();
    let place = settings.origins.get(TOOLS_MODE_KEY).map(ToString::to_string).unwrap_or_default();
    match mode {
        "native" => Ok(()),
        _ if TOOLS_MODES.contains(&mode) => Err(CommandError::usage(format!(
            "tools mode \"{mode}\" {place} needs code mode, which this version does not have; set native"
        ))),
        _ => Err(CommandError::usage(format!(
            "setting \"{TOOLS_MODE_KEY}\" {place} must be {}",
            alternatives(&TOOLS_MODES)
        ))),
    }
}

fn alternatives(words: &[&str]) -> String {
    match words {
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        apply(&mut settings, value).map(|()| settings).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_set_values_and_empty_ones_do_not() {
        let settings = applied(&[("DSH_PERMISSION_MODE", "read-only"), ("DSH_TOOLS_MODE", "")]);
        let settings = settings.expect("valid");
        assert_eq!(settings.permission_mode.as_str(), "read-only");
        assert_eq!(settings.origins[PERMISSION_KEY].to_string(), "in the variable DSH_PERMISSION_MODE");
        assert!(!settings.origins.contains_key(TOOLS_MODE_KEY));
    }

    #[test]
    fn wrong_values_are_told_with_the_right_ones() {
        let wrong = applied(&[("DSH_PERMISSION_MODE", "full")]).expect_err("wrong");
        insta::assert_snapshot!(wrong, @r#"setting "permission_mode" in the variable DSH_PERMISSION_MODE must be read-only, workspace-write or danger-full-access"#);
        let wrong = applied(&[("DSH_TOOLS_MODE", "codes")]).expect_err("wrong");
        insta::assert_snapshot!(wrong, @r#"setting "tools_mode" in the variable DSH_TOOLS_MODE must be native, ptc, code or both"#);
        let settings = applied(&[("DSH_TOOLS_MODE", "ptc")]).expect("valid");
        let wrong = check_tools_mode(&settings).expect_err("not there").message;
        insta::assert_snapshot!(wrong, @r#"tools mode "ptc" in the variable DSH_TOOLS_MODE needs code mode, which this version does not have; set native"#);
    }
}
