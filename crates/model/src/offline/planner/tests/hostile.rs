//! Results that no tool should give.

use lorimer_protocol::{ContentBlock, Message};
use proptest::prelude::*;
use std::sync::Arc;

use super::fake::{Workspace, drive, request};
use super::{ALL_TOOLS, DEMO};
use crate::offline::planner::next_turn;

/// Texts that come close to real results.
fn near_miss() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("Found 3 of 99999999999999999999999 matches\n\n".to_owned()),
        Just("Found 18446744073709551615 matches\n\na.rs\n".to_owned()),
        Just("Line 18446744073709551615: TODO\n".to_owned()),
        Just("\n\n(Showing 100 of 18446744073709551615 paths".to_owned()),
        Just("\n\n(Showing ".to_owned()),
        Just("\n\n(Omitted 7 bytes. Full".to_owned()),
        Just("<content>\n".to_owned()),
        Just("\n</content>".to_owned()),
        Just("(End of file - total 18446744073709551615 lines)".to_owned()),
        Just("(Showing lines 1-1 of ".to_owned()),
        Just("Error: ".to_owned()),
        Just("name = \"ü\n{\"name\":".to_owned()),
        "[a-c]/[a-c]/[a-z]{1,3}\\.(rs|md|png)\n",
        "[a-zä€😀/.`|]{0,12}\n",
        ".{0,20}",
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

fn hostile_answer() -> impl Strategy<Value = Option<(String, Option<bool>)>> {
    prop::option::weighted(0.9, (near_miss(), prop::option::of(any::<bool>())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_results_lead_to_a_report(
        answers in prop::collection::vec(hostile_answer(), 1..60),
        tools in prop::sample::subsequence(ALL_TOOLS.to_vec(), 0..=ALL_TOOLS.len()),
        prompt in ".{0,60}",
    ) {
        let mut answers = answers.into_iter().cycle();
        let outcome = drive(request(&tools, &prompt), |_| answers.next().flatten());
        prop_assert!(outcome.report.starts_with("# Survey of "));
    }
}

#[test]
fn a_listing_that_grows_without_end_ends() {
    let mut n = 0_u64;
    let outcome = drive(request(ALL_TOOLS, DEMO), |call| {
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
        let folder = arguments["path"].as_str().map_or(String::new(), |path| format!("{path}/"));
        let mut page = String::new();
        for _ in 0..300 {
            n += 1;
            page.push_str(&format!("{folder}d{n}/f.rs\n"));
        }
        Some((format!("{page}\n\n(Showing 300 of 90000000 paths."), None))
    });
    assert!(outcome.report.contains("of 90,000,000 paths not looked at"), "{}", outcome.report);
}

#[test]
fn results_that_never_come_are_told() {
    let outcome = drive(request(ALL_TOOLS, DEMO), |_| None);
    assert!(
        outcome.report.contains("Listing the workspace failed: there is no result."),
        "{}",
        outcome.report
    );
}

#[test]
fn failures_are_told_and_gone_without() {
    let outcome = drive(request(ALL_TOOLS, DEMO), |call| match call.name.as_str() {
        "glob" => Some(("Error: glob search failed (exit 2)".to_owned(), Some(true))),
        _ => Workspace::of(&[("a.rs", "// TODO x\n")]).answer(call).ok().map(|text| (text, Some(false))),
    });
    assert!(outcome.report.contains("Listing the workspace failed: `glob search failed (exit 2)`."));
    assert!(outcome.report.contains("- `a.rs:1` `// TODO x`"), "{}", outcome.report);
}

#[test]
fn foreign_calls_and_empty_conversations_do_no_harm() {
    let mut request = request(ALL_TOOLS, DEMO);
    request.messages.clear();
    assert_eq!(next_turn(&request).calls.len(), 1);
    let mut foreign = Message::user_text("x", "", lorimer_protocol::Source::user());
    foreign.role = lorimer_protocol::Role::Assistant;
    foreign.content =
        vec![ContentBlock::tool_call("a", "glob", "{"), ContentBlock::tool_call("a", "bash", "7")];
    request.messages.push(Arc::new(foreign));
    assert_eq!(next_turn(&request).calls.len(), 1);
}
