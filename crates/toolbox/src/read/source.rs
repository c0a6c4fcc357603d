//! Text from a file, in pieces.

use std::io::{self, Read};

use tokio_util::sync::CancellationToken;

use crate::files::{FsCode, FsError, NOT_TEXT_SNIFF_BYTES, describe_binary, describe_invalid, io_text};

/// How much is read at once, in bytes: as much as stays near the processor until it is looked through.
const CHUNK_BYTES: usize = 32 * 1024;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// What bounds the reading of a file.
pub(crate) struct SourceLimits<'a> {
    /// The path for errors.
    pub display_path: &'a str,
    /// Most bytes, however long the file goes on.
    pub bytes: u64,
    pub cancel: &'a CancellationToken,
}

/// Gives the text of `source` to `take` piece by piece, without a byte order mark at its start. No piece splits a
/// character.
///
/// # Errors
/// When it is not UTF-8 text, goes on past the limit, cannot be read, or the caller cancels.
pub(crate) fn each_piece(
    source: &mut impl Read,
    limits: &SourceLimits<'_>,
    mut take: impl FnMut(&str),
) -> Result<(), FsError> {
    let mut buffer = vec![0; CHUNK_BYTES];
    // Bytes of an unfinished character at the start of the buffer.
    let mut held = 0;
    let mut total = 0;
    loop {
        let is_first = total == 0;
        let least = if is_first { NOT_TEXT_SNIFF_BYTES } else { 1 };
        let got = fill(source, &mut buffer[held..], least, limits)?;
        total += got as u64;
        if total > limits.bytes {
            let why = format!(
                "content exceeds the {}-byte limit (it goes on past the size that it says)",
                limits.bytes
            );
            return Err(cannot_read(limits, FsCode::TooLarge, why));
        }
        let bytes = &buffer[..held + got];
        if is_first {
            refuse_binary(bytes, limits)?;
        }
        let text = valid_start(bytes, got == 0, limits)?;
        let text_len = text.len();
        take(if is_first { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text) } else { text });
        if got == 0 {
            return Ok(());
        }
        let end = held + got;
        buffer.copy_within(text_len..end, 0);
        held = end - text_len;
    }
}

/// Reads until there are `least` bytes or the file ends. A file that has nothing now and would have us wait ends here.
fn fill(
    source: &mut impl Read,
    buffer: &mut [u8],
    least: usize,
    limits: &SourceLimits<'_>,
) -> Result<usize, FsError> {
    let mut filled = 0;
    while filled < least {
        if limits.cancel.is_cancelled() {
            return Err(FsError::aborted("read"));
        }
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(cannot_read(limits, FsCode::IoError, io_text(&error))),
        }
    }
    Ok(filled)
}

fn refuse_binary(bytes: &[u8], limits: &SourceLimits<'_>) -> Result<(), FsError> {
    let head = &bytes[..bytes.len().min(NOT_TEXT_SNIFF_BYTES)];
    if memchr::memchr(0, head).is_none() {
        return Ok(());
    }
    Err(cannot_read(limits, FsCode::NotText, format!("binary file ({})", describe_binary(head))))
}

/// The text that the bytes start with; what is left is an unfinished character.
fn valid_start<'a>(bytes: &'a [u8], is_last: bool, limits: &SourceLimits<'_>) -> Result<&'a str, FsError> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let valid = error.valid_up_to();
    if error.error_len().is_none() && !is_last {
        return Ok(std::str::from_utf8(&bytes[..valid]).unwrap_or_default());
    }
    let detail = describe_invalid(bytes, valid).map_or_else(String::new, |what| format!(" ({what})"));
    Err(cannot_read(limits, FsCode::NotText, format!("invalid UTF-8 text{detail}")))
}

fn cannot_read(limits: &SourceLimits<'_>, code: FsCode, why: String) -> FsError {
    FsError::cannot("read", limits.display_path, code, why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes a few at a time.
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn text_of(source: &mut impl Read, bytes: u64) -> Result<String, String> {
        let cancel = CancellationToken::new();
        let limits = SourceLimits { display_path: "/f", bytes, cancel: &cancel };
        let mut text = String::new();
        each_piece(source, &limits, |piece| text.push_str(piece)).map_err(|error| error.message)?;
        Ok(text)
    }

    #[test]
    fn a_mark_is_taken_off_once_and_only_at_the_start() {
        let text = "\u{feff}\u{feff}a\u{feff}";
        assert_eq!(text_of(&mut text.as_bytes(), 100).unwrap(), "\u{feff}a\u{feff}");
        assert_eq!(text_of(&mut &b""[..], 100).unwrap(), "");
    }

    #[test]
    fn characters_may_lie_across_chunks() {
        for shift in 0..4 {
            let text = format!("{}{}", "x".repeat(shift), "😀é中".repeat(40_000));
            assert_eq!(text_of(&mut text.as_bytes(), u64::MAX).unwrap(), text);
        }
    }

    #[test]
    fn an_endless_file_ends_at_the_limit() {
        let error = text_of(&mut io::repeat(b'x'), 1_000_000).unwrap_err();
        assert!(error.starts_with("cannot read \"/f\": content exceeds the 1000000-byte limit"), "{error}");
    }

    #[test]
    fn what_is_not_text_is_refused_early_and_late() {
        let mut late = "é".repeat(100_000).into_bytes();
        late.extend(b"\xff\n");
        for (bytes, text) in [
            (&b"head\n\0"[..], "binary file (it has NUL bytes)"),
            (b"ok \xc3", "invalid UTF-8 text"),
            (b"\xed\xa0\x80", "invalid UTF-8 text"),
            (&late, "invalid UTF-8 text"),
        ] {
            assert_eq!(text_of(&mut &*bytes, u64::MAX).unwrap_err(), format!("cannot read \"/f\": {text}"));
        }
    }

    #[test]
    fn a_nul_after_the_first_bytes_is_text() {
        let mut bytes = vec![b'a'; NOT_TEXT_SNIFF_BYTES];
        bytes.push(0);
        assert_eq!(text_of(&mut bytes.as_slice(), u64::MAX).unwrap().len(), bytes.len());
    }

    #[test]
    fn a_cancelled_read_ends_between_chunks() {
        struct CancelsAtOnce(CancellationToken);
        impl Read for CancelsAtOnce {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.cancel();
                buffer.fill(b'x');
                Ok(buffer.len())
            }
        }
        let cancel = CancellationToken::new();
        let limits = SourceLimits { display_path: "/f", bytes: u64::MAX, cancel: &cancel };
        let error = each_piece(&mut CancelsAtOnce(cancel.clone()), &limits, |_| {}).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (FsCode::Aborted, "read aborted"));
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_text(bytes in prop::collection::vec(any::<u8>(), 0..200), step in 1_usize..9) {
            let whole = text_of(&mut bytes.as_slice(), u64::MAX);
            let dribbled = text_of(&mut Dribble(&bytes, step), u64::MAX);
            prop_assert_eq!(&whole, &dribbled);
            let is_text = std::str::from_utf8(&bytes).is_ok() && !bytes.contains(&0);
            prop_assert_eq!(whole.is_ok(), is_text);
        }
    }
}
