//! `--output-schema`: the last answer is JSON that fits a schema.

use std::path::Path;

use lorimer_tools::{check_value, unsupported_keywords};
use serde_json::Value;

use crate::exit::CommandError;

/// A schema that an answer has to fit.
#[derive(Clone, Debug)]
pub struct AnswerSchema(Value);

impl AnswerSchema {
    /// Reads a schema from a file.
    ///
    /// # Errors
    /// When it cannot be read, is not JSON, or has keywords that cannot be checked.
    pub fn read(path: &Path) -> Result<Self, CommandError> {
        let unusable =
            |why: String| CommandError::usage(format!("cannot use {} as a schema: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
        let schema: Value = serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
        match unsupported_keywords(&schema).as_slice() {
            [] => Ok(Self(schema)),
            found => Err(unusable(found.join("; "))),
        }
    }

    /// What the model is told.
    pub fn instruction(&self) -> String {
        format!(
            "Your last answer must be JSON that fits this JSON Schema, without any other text or code fence around \
             it:\n{}",
            self.0
        )
    }

    /// Why an answer does not fit; `None` when it does.
    pub fn misfit(&self, answer: &str) -> Option<String> {
        match serde_json::from_str::<Value>(answer.trim()) {
            Err(error) => Some(format!("the answer is not JSON: {error}")),
            Ok(value) => {
                let violations = check_value(&self.0, &value);
                (!violations.is_empty())
                    .then(|| format!("the answer does not fit the schema: {}", violations.join("; ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_fit_or_say_why_not() {
        let schema = AnswerSchema(
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        );
        assert_eq!(schema.misfit(" {\"n\": 3}\n"), None);
        assert_eq!(
            schema.misfit("{\"n\": \"3\"}").as_deref(),
            Some("the answer does not fit the schema: \"n\" must be an integer (got the string \"3\")")
        );
        assert!(schema.misfit("three").is_some_and(|why| why.starts_with("the answer is not JSON")));
    }
}
