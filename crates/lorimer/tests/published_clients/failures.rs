//! Providers that fail.

use serde_json::json;

use crate::driver::{Client, Driver};
use crate::lab::{Lab, until};
use crate::server::{Server, say, text};

with_both_clients!(
    a_refusal_ends_the_turn,
    a_failure_is_repeated_and_told,
    a_failure_that_passes_is_not_the_end,
    without_a_key_the_turn_fails,
    a_stalled_provider_does_not_hold_the_runtime,
);

fn a_refusal_ends_the_turn(client: Client) {
    let server = Server::failing(
        &[say("fine"), say("fine")],
        &json!({"1": {"status": 400, "message": "no such thing"}}),
    );
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    let run = driver.run("a", "s", "hello");
    assert_eq!((run.text.as_str(), run.reason()["kind"].as_str()), ("", Some("error")));
    let error = &run.reason()["error"];
    assert_eq!((&error["status"], &error["code"]), (&json!(400), &json!("INVALID_REQUEST")), "{error}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("no such thing")), "{error}");
    assert_eq!(server.requests().len(), 1);
    // The session goes on.
    assert_eq!(driver.run("a", "s", "and now?").text, "fine");
    driver.close("a");
}

fn a_failure_is_repeated_and_told(client: Client) {
    let broken = json!({"status": 500, "message": "out of order"});
    let server = Server::failing(&[], &json!({"1": broken, "2": broken, "3": broken}));
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    let run = driver.run("a", "s", "hello");
    assert_eq!(run.reason()["kind"], "error");
    assert_eq!(run.reason()["error"]["status"], 500);
    let retries = run.of_type("llm/retry");
    assert_eq!(retries.iter().map(|data| data["retry"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(retries.iter().all(|data| data["failure"]["status"] == 500), "{retries:?}");
    assert_eq!((run.of_type("llm/retry-started").len(), server.requests().len()), (2, 3));
    driver.close("a");
    lab.log("s").assert_closed();
}

fn a_failure_that_passes_is_not_the_end(client: Client) {
    let server = Server::failing(&[say("at last")], &json!({"1": {"status": 503}}));
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    let run = driver.run("a", "s", "hello");
    assert_eq!((run.text.as_str(), run.reason()), ("at last", &json!({"kind": "completed"})));
    driver.close("a");
}

fn without_a_key_the_turn_fails(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("never")]));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.keyless(&server)).ok();
    let run = driver.run("a", "s", "hello");
    assert_eq!(run.reason()["kind"], "error");
    assert_eq!(run.reason()["error"]["code"], "MISSING_CREDENTIAL", "{}", run.reason());
    driver.close("a");
    assert!(server.requests().is_empty());
}

fn a_stalled_provider_does_not_hold_the_runtime(client: Client) {
    let server = Server::raw(&[vec![text("part").into(), json!({"ms": 600_000})]]);
    let lab = Lab::new();
    let mut options = lab.options(&server);
    options["request_timeout_seconds"] = 20.into();
    let mut driver = Driver::start(client);
    driver.open("a", &options).ok();
    driver.begin("turn", "a", "stalled", "hello");
    // A request is logged in pieces.
    until(|| std::fs::read_to_string(server.request_log()).is_ok_and(|log| log.ends_with('\n')));
    // Requests have their answers while the turn stands still, of that session too.
    let workspace = lab.workspace().display().to_string();
    assert_eq!(driver.directory("a", "stalled"), workspace);
    assert_eq!(driver.directory("a", "other"), workspace);
    let closed = driver.close("a");
    assert!(closed.seconds() < 15.0, "{closed:?}");
    assert_eq!(driver.wait("turn").error().0, "TransportClosedError");
    let log = lab.log("stalled");
    log.assert_closed();
    assert_eq!(log.ends(), [&json!({"kind": "aborted", "reason": {"kind": "disposed"}})]);
}
