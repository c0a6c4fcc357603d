//! Line ends.

use std::borrow::Cow;

/// The text with every CRLF as LF. A lone CR stays.
pub(crate) fn to_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}
