//! How runtimes end: in peace, in the middle of a turn, and by force.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::driver::{Client, Driver};
use crate::lab::{Lab, until};
use crate::server::{Server, ask, say};

with_both_clients!(
    an_idle_runtime_closes_at_once,
    a_runtime_closes_while_a_command_runs,
    a_killed_runtime_is_told_and_its_session_goes_on,
    a_client_that_dies_takes_its_runtime_with_it,
    a_request_without_an_answer_times_out,
);

fn an_idle_runtime_closes_at_once(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one")]));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    driver.run("a", "s", "hello");
    let closed = driver.close("a");
    assert!(closed.seconds() < 10.0, "{closed:?}");
    lab.assert_nothing_runs();
    lab.log("s").assert_closed();
    // The name is free for another runtime, also on the same session.
    driver.open("a", &lab.options(&server)).ok();
    driver.resume("a", "s").ok();
    driver.close("a");
}

/// A command that tells when it runs, and then does for longer than a test may wait.
fn long_command() -> serde_json::Value {
    let command = "touch began; sleep 30 & sleep 300";
    ask("bash", json!({"command": command, "description": "Take long", "timeoutMs": 600_000}))
}

fn a_runtime_closes_while_a_command_runs(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[long_command(), say("never")]));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.unfenced(&server)).ok();
    driver.begin("turn", "a", "s", "take long");
    until(|| lab.workspace().join("began").exists());
    let closed = driver.close("a");
    assert!(closed.seconds() < 15.0, "{closed:?}");
    lab.assert_nothing_runs();
    assert_eq!(driver.wait("turn").error().0, "TransportClosedError");
    let log = lab.log("s");
    log.assert_closed();
    assert_eq!(log.events.last().expect("an event")["type"], "turn/end");
    assert_eq!(log.ends(), [&json!({"kind": "aborted", "reason": {"kind": "disposed"}})]);
    assert_eq!(server.requests().len(), 1);
}

fn a_killed_runtime_is_told_and_its_session_goes_on(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[long_command(), say("I am back.")]));
    let mut driver = Driver::start(client);
    let runtime = driver.open("a", &lab.unfenced(&server)).ok()["pid"].as_i64().expect("a process id");
    driver.begin("turn", "a", "s", "take long");
    until(|| lab.workspace().join("began").exists());
    let runtime = i32::try_from(runtime).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(runtime, Signal::KILL).expect("a signal");
    assert_eq!(driver.wait("turn").error().0, "TransportClosedError");
    // Node knows of no exit code after a signal, and Python not of one that it has not waited for.
    let code = if client == Client::Python { json!(-9) } else { json!(null) };
    assert_eq!(driver.ask(json!({"op": "exitCode", "harness": "a"})).ok(), code);
    let lost = driver.resume("a", "s");
    let (class, message) = lost.error();
    assert_eq!(class, "TransportClosedError");
    assert!(message.contains(&format!("exit code: {code}")), "{message}");
    lab.assert_nothing_runs();

    driver.open("b", &lab.options(&server)).ok();
    driver.resume("b", "s").ok();
    let log = lab.log("s");
    log.assert_closed();
    assert_eq!(log.ends(), [&json!({"kind": "interrupted"})]);
    assert!(log.result().is_error);
    let run = driver.run("b", "s", "Are you there?");
    assert_eq!((run.text.as_str(), run.reason()), ("I am back.", &json!({"kind": "completed"})));
    driver.close("b");
}

fn a_client_that_dies_takes_its_runtime_with_it(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[long_command(), say("never")]));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.unfenced(&server)).ok();
    driver.begin("turn", "a", "s", "take long");
    until(|| lab.workspace().join("began").exists());
    drop(driver);
    lab.assert_nothing_runs();
    let log = lab.log("s");
    log.assert_closed();
    assert_eq!(log.ends(), [&json!({"kind": "aborted", "reason": {"kind": "disposed"}})]);
}

fn a_request_without_an_answer_times_out(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one")]));
    let mut driver = Driver::start(client);
    let mut options = lab.options(&server);
    options["request_timeout_seconds"] = 5.into();
    let runtime = driver.open("a", &options).ok()["pid"].as_i64().expect("a process id");
    let runtime = i32::try_from(runtime).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(runtime, Signal::STOP).expect("a signal");
    let late = driver.resume("a", "s");
    let class = if client == Client::Python { "TimeoutError" } else { "RequestTimeoutError" };
    assert_eq!(late.error().0, class, "{late:?}");
    assert!(late.error().1.starts_with("session/resume timed out"), "{late:?}");
    kill_process(runtime, Signal::CONT).expect("a signal");
    // What came too late hurts nothing.
    assert_eq!(driver.run("a", "t", "hello").text, "one");
    driver.close("a");
}
