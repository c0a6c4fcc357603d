//! The mounts of this process, from `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Where the mounts are that can be written. Of several at one place the last one counts: it is on top.
pub(super) fn changeable() -> io::Result<Vec<PathBuf>> {
    Ok(parse(&std::fs::read("/proc/self/mountinfo")?))
}

fn parse(table: &[u8]) -> Vec<PathBuf> {
    let mut mounts: Vec<(PathBuf, bool)> = Vec::new();
    for line in table.split(|byte| *byte == b'\n') {
        // Id, parent, device, root, place, options, and more.
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let (Some(place), Some(options)) = (fields.next(), fields.next()) else { continue };
        let place = PathBuf::from(OsString::from_vec(unescaped(place)));
        let read_only = options.split(|byte| *byte == b',').any(|option| option == b"ro");
        mounts.retain(|(known, _)| *known != place);
        mounts.push((place, read_only));
    }
    mounts.into_iter().filter(|(_, read_only)| !read_only).map(|(place, _)| place).collect()
}

/// Blanks, tabs, line ends and backslashes stand as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let digits =
            after.get(..3).filter(|_| *first == b'\\').and_then(|three| std::str::from_utf8(three).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                text.push(byte);
                rest = &after[3..];
            }
            None => {
                text.push(*first);
                rest = after;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_mount_of_a_place_counts() {
        let table = b"1 0 8:1 / / rw,relatime - ext4 d rw\n2 1 8:1 /a /w\\040x rw - ext4 d rw\n\
            3 1 8:1 /b /ro ro,nosuid - ext4 d rw\n4 2 8:1 /a /w\\040x ro - ext4 d rw\n5 1 8:1 /c /c rw - ext4 d rw\n";
        assert_eq!(parse(table), ["/", "/c"].map(PathBuf::from));
    }
}
