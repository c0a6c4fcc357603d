//! The value of a finished command, and the text that the model reads.

use lorimer_process::{Captured, Finished};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::escalation;

/// How a command was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ForegroundKind {
    /// To its end, with the call waiting for it.
    #[default]
    Foreground,
}

/// What a command printed and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BashOutput {
    /// How it was run.
    pub kind: ForegroundKind,
    /// Its exit code, or null when it did not end by itself.
    #[schemars(schema_with = "integer_or_null")]
    pub exit_code: Option<i32>,
    /// The signal that ended it, or null.
    #[schemars(schema_with = "string_or_null")]
    pub signal: Option<String>,
    /// Whether it was ended because its time was up.
    pub timed_out: bool,
    /// Whether it was ended because the caller cancelled; such a call fails, so a result has false.
    pub aborted: bool,
    /// The time limit it ran under, in milliseconds.
    pub timeout_ms: u64,
    /// Standard output.
    pub stdout: StreamOutput,
    /// Standard error.
    pub stderr: StreamOutput,
    /// How many of its processes could not be killed because they have rights that Lorimer lacks. Left out when 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub survivors: u32,
    /// The mode under which something seems to have been refused to it. Left out when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_under: Option<String>,
    /// Whether the model may ask for wider access then.
    #[serde(skip)]
    pub can_escalate: bool,
}

/// What is shown of one output stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamOutput {
    /// The stream, or its start and end with a line between that tells how much is missing.
    pub text: String,
    /// Whether anything is missing in the text.
    pub truncated: bool,
    /// The file that has the full stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill_path: Option<String>,
}

impl BashOutput {
    /// The value of a command that ran under this time limit.
    pub(super) fn new(finished: Finished, timeout_ms: u64) -> Self {
        Self {
            kind: ForegroundKind::Foreground,
            exit_code: finished.exit_code,
            signal: finished.signal,
            timed_out: finished.timed_out,
            aborted: finished.cancelled,
            timeout_ms,
            stdout: StreamOutput::from(finished.stdout),
            stderr: StreamOutput::from(finished.stderr),
            survivors: finished.survivors,
            denied_under: None,
            can_escalate: false,
        }
    }

    /// What the model reads.
    ///
    /// The printed text is left exactly as it was printed, and each marker is one newline and the marker. So
    /// `echo x; exit 3` reads `x\n\n[exit code: 3]`: whoever cuts a trailing `\n[exit code: 3]` off has `x\n` again,
    /// and can tell it from `printf x; exit 3`, which reads `x\n[exit code: 3]`. The lines inside of the printed text,
    /// `[stderr]` and the one of a truncated stream, take no blank line before them.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.stdout.text();
        let stderr = self.stderr.text();
        if !stderr.is_empty() {
            start_line(&mut text);
            text.push_str("[stderr]\n");
            text.push_str(&stderr);
        }
        if text.is_empty() {
            text.push_str("(no output)");
        }
        for marker in self.markers() {
            text.push('\n');
            text.push_str(&marker);
        }
        text
    }

    /// The marker lines, in their order. How the command ended is the last one: the card looks for it there.
    fn markers(&self) -> Vec<String> {
        let mut markers = Vec::new();
        if let Some(mode) = &self.denied_under {
            markers.push(format!("[sandbox: file access denied under {mode} mode]"));
            if self.can_escalate {
                markers.push(escalation::offer("command"));
            }
        }
        if self.survivors > 0 {
            markers.push(format!("[still running, could not be killed: {} process(es)]", self.survivors));
        }
        if self.timed_out {
            markers.push(format!("[timed out after {}ms]", self.timeout_ms));
        }
        match (&self.signal, self.exit_code) {
            (Some(signal), _) => markers.push(format!("[killed by signal: {signal}]")),
            (None, Some(code)) if code != 0 => markers.push(format!("[exit code: {code}]")),
            (None, _) => {}
        }
        markers
    }
}

impl StreamOutput {
    fn text(&self) -> String {
        let mut text = self.text.clone();
        if self.truncated {
            start_line(&mut text);
            let path = self.spill_path.as_deref().unwrap_or("(unavailable)");
            text.push_str(&format!("[output truncated; full output: {path}]"));
        }
        text
    }
}

impl From<Captured> for StreamOutput {
    fn from(captured: Captured) -> Self {
        let spill_path = captured.spill_path.map(|path| path.to_string_lossy().into_owned());
        Self { text: captured.text, truncated: captured.truncated, spill_path }
    }
}

/// Ends the last line, if there is one that has no end.
fn start_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn integer_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [{ "type": "integer" }, { "type": "null" }] })
}

fn string_or_null(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [{ "type": "string" }, { "type": "null" }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(stdout: &str, stderr: &str, exit_code: i32) -> BashOutput {
        BashOutput {
            exit_code: Some(exit_code),
            timeout_ms: 60_000,
            stdout: StreamOutput { text: stdout.to_owned(), ..StreamOutput::default() },
            stderr: StreamOutput { text: stderr.to_owned(), ..StreamOutput::default() },
            ..BashOutput::default()
        }
    }

    fn killed(stdout: &str, signal: &str) -> BashOutput {
        BashOutput { exit_code: None, signal: Some(signal.to_owned()), ..ended(stdout, "", 0) }
    }

    fn cut(text: &str, spill_path: Option<&str>) -> StreamOutput {
        StreamOutput { text: text.to_owned(), truncated: true, spill_path: spill_path.map(str::to_owned) }
    }

    #[test]
    fn printed_text_stays_as_it_is() {
        for text in ["TERMINAL_OK\n", "x", "\n", "  a\n\n"] {
            assert_eq!(ended(text, "", 0).text(), text);
        }
    }

    #[test]
    fn the_streams_follow_each_other() {
        insta::assert_debug_snapshot!(ended("", "", 0).text(), @r#""(no output)""#);
        insta::assert_debug_snapshot!(ended("", "e\n", 0).text(), @r#""[stderr]\ne\n""#);
        insta::assert_debug_snapshot!(ended("o\n", "e\n", 0).text(), @r#""o\n[stderr]\ne\n""#);
        insta::assert_debug_snapshot!(ended("o", "e", 0).text(), @r#""o\n[stderr]\ne""#);
    }

    #[test]
    fn a_marker_is_one_newline_and_the_marker() {
        insta::assert_debug_snapshot!(ended("", "", 1).text(), @r#""(no output)\n[exit code: 1]""#);
        insta::assert_debug_snapshot!(ended("x", "", 3).text(), @r#""x\n[exit code: 3]""#);
        insta::assert_debug_snapshot!(ended("x\n", "", 3).text(), @r#""x\n\n[exit code: 3]""#);
        insta::assert_debug_snapshot!(ended("o\n", "e\n", 255).text(), @r#""o\n[stderr]\ne\n\n[exit code: 255]""#);
        insta::assert_debug_snapshot!(killed("x\n", "SIGKILL").text(), @r#""x\n\n[killed by signal: SIGKILL]""#);
    }

    #[test]
    fn markers_have_an_order() {
        let late = BashOutput { timed_out: true, timeout_ms: 250, ..killed("", "SIGTERM") };
        insta::assert_debug_snapshot!(late.text(), @r#""(no output)\n[timed out after 250ms]\n[killed by signal: SIGTERM]""#);
        let polite = BashOutput { timed_out: true, timeout_ms: 250, ..ended("bye\n", "", 0) };
        insta::assert_debug_snapshot!(polite.text(), @r#""bye\n\n[timed out after 250ms]""#);
        let stubborn = BashOutput { survivors: 2, ..late };
        insta::assert_debug_snapshot!(stubborn.text(), @r#""(no output)\n[still running, could not be killed: 2 process(es)]\n[timed out after 250ms]\n[killed by signal: SIGTERM]""#);
    }

    #[test]
    fn a_truncated_stream_ends_with_its_file() {
        let both = BashOutput {
            stdout: cut("a\n[… 9 bytes omitted …]\nb", Some("/s/files/1.stdout")),
            stderr: cut("c\n", None),
            ..ended("", "", 2)
        };
        insta::assert_snapshot!(both.text(), @"
        a
        [… 9 bytes omitted …]
        b
        [output truncated; full output: /s/files/1.stdout]
        [stderr]
        c
        [output truncated; full output: (unavailable)]
        [exit code: 2]
        ");
        let nothing_kept = BashOutput { stdout: cut("", None), ..ended("", "", 0) };
        insta::assert_snapshot!(nothing_kept.text(), @"[output truncated; full output: (unavailable)]");
    }

    #[test]
    fn the_value_is_read_back_as_it_was() {
        let output = BashOutput { stdout: cut("a", Some("/f")), ..killed("", "SIGTERM") };
        let value = serde_json::to_value(&output).expect("JSON");
        insta::assert_json_snapshot!(value, @r#"
        {
          "kind": "foreground",
          "exitCode": null,
          "signal": "SIGTERM",
          "timedOut": false,
          "aborted": false,
          "timeoutMs": 60000,
          "stdout": {
            "text": "a",
            "truncated": true,
            "spillPath": "/f"
          },
          "stderr": {
            "text": "",
            "truncated": false
          }
        }
        "#);
        assert_eq!(serde_json::from_value::<BashOutput>(value).expect("the value"), output);
    }
}
