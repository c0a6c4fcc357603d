//! The cards of a command: made from the arguments and the text that the model read, live and on replay.
//!
//! How a command ended is read from the last line of its text. A command that prints such a line itself and then ends
//! with exit code 0 is shown as if it had ended that way; what the model reads is the same.

use lorimer_protocol::{CallView, ContentBlock, ResultView};
use lorimer_tools::DurableResult;

use super::{BashArgs, command};

const SIGNAL_MARKER: &str = "\n[killed by signal: ";
const EXIT_MARKER: &str = "\n[exit code: ";

/// The shortest fence of a Markdown code block, in backticks.
const MIN_FENCE: usize = 3;

/// The card of a pending command.
pub(super) fn of_call(args: &BashArgs) -> CallView {
    CallView::Terminal {
        title: args.command.clone(),
        description: Some(args.description.clone()).filter(|description| !description.is_empty()),
        cwd: command::given_workdir(args).map(str::to_owned),
    }
}

/// The card of a result; none when there is anything but one text.
pub(super) fn of_result(result: DurableResult<'_>) -> Option<ResultView> {
    let [block] = result.content else {
        return None;
    };
    let text = block.as_text()?;
    Some(if result.is_error { of_error(text) } else { of_output(text) })
}

fn of_output(text: &str) -> ResultView {
    let (output, exit_code, signal) = if let Some((output, signal)) = split_marker(text, SIGNAL_MARKER) {
        (output, None, Some(signal.to_owned()))
    } else if let Some((output, code)) = split_exit_code(text) {
        (output, Some(code), None)
    } else {
        (text, Some(0), None)
    };
    ResultView::Terminal { title: None, output: Some(output.to_owned()), exit_code, signal }
}

fn split_exit_code(text: &str) -> Option<(&str, i64)> {
    let (output, code) = split_marker(text, EXIT_MARKER)?;
    Some((output, code.parse().ok()?))
}

/// The text before a marker that ends it, and what the marker says.
fn split_marker<'a>(text: &'a str, marker: &str) -> Option<(&'a str, &'a str)> {
    let (output, said) = text.strip_suffix(']')?.rsplit_once(marker)?;
    (!said.is_empty() && !said.contains([']', '\n'])).then_some((output, said))
}

fn of_error(text: &str) -> ResultView {
    let text = text.trim_end_matches('\n');
    let fence = "`".repeat(MIN_FENCE.max(longest_backtick_run(text) + 1));
    let fenced = format!("{fence}console\n{text}\n{fence}");
    ResultView::Generic { title: None, content: Some(vec![ContentBlock::text(fenced)]) }
}

/// A fence has to be longer than anything inside that could be taken for its end.
fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, is_error: bool) -> String {
        let content = [ContentBlock::text(text)];
        let view = of_result(DurableResult { content: &content, is_error, meta: None }).expect("a card");
        serde_json::to_string(&view).expect("JSON")
    }

    #[test]
    fn a_command_is_a_terminal() {
        let mut args = BashArgs {
            command: "ls -l".to_owned(),
            description: "List the files".to_owned(),
            timeout_ms: None,
            workdir: Some("src".to_owned()),
            ..BashArgs::default()
        };
        insta::assert_snapshot!(serde_json::to_string(&of_call(&args)).expect("JSON"), @r#"{"card":"terminal","title":"ls -l","description":"List the files","cwd":"src"}"#);
        args.description.clear();
        args.workdir = None;
        insta::assert_snapshot!(serde_json::to_string(&of_call(&args)).expect("JSON"), @r#"{"card":"terminal","title":"ls -l"}"#);
    }

    #[test]
    fn the_last_marker_is_cut_and_told() {
        insta::assert_snapshot!(shown("TERMINAL_OK\n", false), @r#"{"card":"terminal","output":"TERMINAL_OK\n","exitCode":0}"#);
        insta::assert_snapshot!(shown("x\n\n[exit code: 3]", false), @r#"{"card":"terminal","output":"x\n","exitCode":3}"#);
        insta::assert_snapshot!(shown("(no output)\n[exit code: 1]", false), @r#"{"card":"terminal","output":"(no output)","exitCode":1}"#);
        insta::assert_snapshot!(shown("x\n[timed out after 9ms]\n[killed by signal: SIGTERM]", false), @r#"{"card":"terminal","output":"x\n[timed out after 9ms]","signal":"SIGTERM"}"#);
    }

    #[test]
    fn what_only_looks_like_a_marker_is_output() {
        for text in [
            "[exit code: 3]",
            "x\n[exit code: 3]\n",
            "x\n[exit code: three]",
            "x\n[exit code: 3] y]",
            "x\n[killed by signal: ]",
            "x\n[killed by signal: A\nB]",
        ] {
            let view = of_output(text);
            let plain = ResultView::Terminal {
                title: None,
                output: Some(text.to_owned()),
                exit_code: Some(0),
                signal: None,
            };
            assert_eq!(view, plain, "{text:?}");
        }
    }

    #[test]
    fn an_error_is_a_fenced_block() {
        insta::assert_snapshot!(shown("Error: tool call aborted\n\n", true), @r#"{"card":"generic","content":[{"type":"text","text":"```console\nError: tool call aborted\n```"}]}"#);
        insta::assert_snapshot!(shown("a ```` b", true), @r#"{"card":"generic","content":[{"type":"text","text":"`````console\na ```` b\n`````"}]}"#);
    }

    #[test]
    fn anything_but_one_text_has_no_card() {
        let text = ContentBlock::text("x");
        for content in [vec![], vec![text.clone(), text]] {
            assert_eq!(of_result(DurableResult { content: &content, is_error: false, meta: None }), None);
        }
    }
}
