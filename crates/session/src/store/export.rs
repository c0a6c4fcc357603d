//! Taking a log out as plain JSON lines.

use std::io::Write;

use lorimer_protocol::SessionId;

use super::lines::NextLine;
use super::open::OpenError;
use super::reader::open_lines;
use super::{Store, StoreError};

impl Store {
    /// Writes a session's log as plain JSON lines of format 0 and returns how many, the header counted.
    ///
    /// Lines are as they are stored: packed rows stay packed, lines that are not understood stay as they are. A line that
    /// was not written whole is left out.
    ///
    /// # Errors
    /// When there is no such session, its log cannot be decompressed to the end, or `out` fails.
    pub fn export(&self, id: &SessionId, out: &mut impl Write) -> Result<u64, OpenError> {
        let log = self.find(id)?;
        let (mut lines, header) = open_lines(&log)?;
        let mut line = header.line;
        let mut count = 0;
        loop {
            line.push(b'\n');
            out.write_all(&line).map_err(StoreError::Io)?;
            count += 1;
            match lines.next(&mut line).map_err(|error| OpenError::io(&log.path, &error))? {
                NextLine::Line => {}
                NextLine::End | NextLine::Torn => break,
                NextLine::Damaged(why) => {
                    return Err(OpenError::io(&log.path, &std::io::Error::other(why)));
                }
            }
        }
        out.flush().map_err(StoreError::Io)?;
        Ok(count)
    }
}
