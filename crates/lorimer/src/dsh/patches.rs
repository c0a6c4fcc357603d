//! `--patch FILE`: reading a file as a list of entries. What an entry means is not known here.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::yaml::{self, Node, Value};
use crate::exit::CommandError;

/// Longest patch file, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Most content of a patch file with its aliases written out, in values and bytes of text.
const MAX_CONTENT: usize = 2 * 1024 * 1024;

/// One patch file.
#[derive(Debug)]
pub struct Patch {
    /// The file, as it was named.
    pub path: PathBuf,
    /// Its entries.
    pub entries: Vec<Entry>,
}

/// One entry of a patch file, or one row that an entry inserts.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The entry's number in the file, from 1.
    pub number: usize,
    /// Its line, from 1.
    pub line: usize,
    /// Its fields in order.
    pub fields: Vec<(String, Node)>,
}

impl Entry {
    /// A field's value.
    pub fn field(&self, name: &str) -> Option<&Node> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, node)| node)
    }

    /// A field's value when it is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match &self.field(name)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Patch {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, is too long, or is no list of mappings of plain values.
    pub fn read(path: &Path) -> Result<Self, CommandError> {
        let text = read_text(path)?;
        Self::parse(path, &text)
    }

    /// The entries of a file's text.
    ///
    /// # Errors
    /// When it is no list of mappings of plain values.
    pub fn parse(path: &Path, text: &str) -> Result<Self, CommandError> {
        let shown = path.display();
        let root = yaml::read(text, MAX_CONTENT).map_err(|error| {
            CommandError::usage(if error.expression {
                format!("overlay {shown}, line {}: {}", error.line, error.message)
            } else {
                format!("failed to parse overlay {shown}: line {}: {}", error.line, error.message)
            })
        })?;
        let Some(Value::List(items)) = root.map(|root| root.value) else {
            return Err(CommandError::usage(format!(
                "overlay {shown} must be a top-level YAML array of loader patch entries"
            )));
        };
        let entries = items.into_iter().zip(1..).map(|(item, number)| match item.value {
            Value::Map(fields) => Ok(Entry { number, line: item.line, fields }),
            _ => Err(CommandError::usage(format!(
                "overlay entry {number} in {shown} must be a mapping (a loader patch entry)"
            ))),
        });
        Ok(Self { path: path.to_owned(), entries: entries.collect::<Result<_, _>>()? })
    }
}

fn read_text(path: &Path) -> Result<String, CommandError> {
    let unusable =
        |why: String| CommandError::usage(format!("failed to read overlay {}: {why}", path.display()));
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| unusable(error.to_string()))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(unusable(format!("it is longer than {MAX_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| unusable("it is not UTF-8".to_owned()))
}
