//! Folder names for workspaces and sessions (core spec 1.13).

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Longest project slug, in UTF-16 units.
const MAX_SLUG_UNITS: usize = 251;

/// The folder name of a workspace: DSH's key, then eight hex digits of a hash of the path, so that two paths that
/// spell alike (or are cut alike) never share a folder.
///
/// ```
/// # use lorimer_session::project_key;
/// assert!(project_key("/home/u/my proj").starts_with("--home-u-my~0020proj--"));
/// assert_ne!(project_key("/a/b"), project_key("/a-b"));
/// ```
pub fn project_key(cwd: &str) -> String {
    let mut slug = String::new();
    let mut in_separator = false;
    for unit in cwd.encode_utf16() {
        let separator = matches!(unit, 0x2f | 0x5c | 0x3a);
        if !separator {
            escape_unit(&mut slug, unit);
        } else if !in_separator {
            slug.push('-');
        }
        in_separator = separator;
    }
    let slug = slug.trim_start_matches('-');
    let slug = if slug.is_empty() { "root" } else { &slug[..slug.len().min(MAX_SLUG_UNITS - 16)] };
    let mut name = format!("--{slug}--");
    for byte in &Sha256::digest(cwd.as_bytes())[..4] {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// The folder name of a session id; `None` for an empty id.
pub(super) fn encode_segment(id: &str) -> Option<String> {
    match id {
        "" => None,
        "." => Some("~002E".to_owned()),
        ".." => Some("~002E~002E".to_owned()),
        _ => {
            let mut name = String::new();
            id.encode_utf16().for_each(|unit| escape_unit(&mut name, unit));
            Some(name)
        }
    }
}

/// Writes `[A-Za-z0-9._-]` as it is and anything else as `~` and four hex digits, so the output is ASCII.
fn escape_unit(out: &mut String, unit: u16) {
    match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') => {
            out.push(byte as char)
        }
        _ => {
            let _ = write!(out, "~{unit:04X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_fold_and_odd_units_are_escaped() {
        assert!(project_key("/").starts_with("--root--"));
        assert!(project_key(r"C:\x//y").starts_with("--C-x-y--"));
        assert!(project_key("/é~").starts_with("--~00E9~007E--"));
        assert!(project_key(&"/long".repeat(200)).len() <= 255);
        assert_eq!(encode_segment(".."), Some("~002E~002E".to_owned()));
        assert_eq!(encode_segment("a/b"), Some("a~002Fb".to_owned()));
        assert_eq!(encode_segment(""), None);
    }
}
