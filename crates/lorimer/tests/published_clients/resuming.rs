//! Sessions that go on in another process, and what may not be taken for one.

use std::path::PathBuf;

use crate::driver::{Client, Driver};
use crate::lab::Lab;
use crate::server::{Server, say};

with_both_clients!(
    a_session_goes_on_in_another_process,
    a_session_that_is_not_there_is_refused,
    a_session_that_is_open_is_refused,
    a_damaged_session_is_refused,
);

fn a_session_goes_on_in_another_process(client: Client) {
    let server = Server::scripted(&[say("I will keep 4711."), say("It is 4711.")]);
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    driver.run("a", "s", "Keep 4711.");
    driver.close("a");
    driver.open("b", &lab.options(&server)).ok();
    assert_eq!(driver.resume("b", "s").ok()["id"], "s");
    let run = driver.run("b", "s", "Which number?");
    assert_eq!(run.text, "It is 4711.");
    assert_eq!(run.of_type("turn/start")[0]["turn"], 2);
    // The second request begins as the first did, and goes on with what came of it.
    let requests = server.requests();
    let [first, second] =
        [0, 1].map(|at: usize| requests[at]["messages"].as_array().expect("messages").clone());
    assert_eq!(second[..first.len()], first);
    assert_eq!(second[first.len()]["content"], "I will keep 4711.");
    assert_eq!(second.last().expect("a message")["content"], "Which number?");
    driver.close("b");
    assert_eq!((lab.stored(), lab.log("s").ends().len()), (1, 2));
}

fn a_session_that_is_not_there_is_refused(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("new")]));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    for id in ["nowhere", "../s", "s/../s"] {
        assert_eq!(driver.resume("a", id).refusal(), format!("session \"{id}\" not found"));
    }
    assert_eq!(lab.stored(), 0);
    // The id is free: the refusal has not made it anything.
    assert_eq!(driver.run("a", "nowhere", "hello").text, "new");
    driver.close("a");
    assert_eq!(lab.stored(), 1);
}

fn a_session_that_is_open_is_refused(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one"), say("two")]));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    driver.open("b", &lab.options(&server)).ok();
    driver.run("a", "s", "hello");
    assert_eq!(driver.resume("a", "s").refusal(), "SDK session is already open or opening: s");
    let elsewhere = driver.resume("b", "s");
    assert!(elsewhere.refusal().contains("in use by process"), "{elsewhere:?}");
    // Neither is it replaced by what a prompt would create.
    let prompted =
        driver.ask(serde_json::json!({"op": "run", "harness": "b", "session": "s", "input": "hello"}));
    assert!(prompted.refusal().contains("already exists"), "{prompted:?}");
    assert_eq!(driver.run("a", "s", "and on").text, "two");
    driver.close("a");
    // Once the one has let go, the other may.
    driver.resume("b", "s").ok();
    driver.close("b");
    assert_eq!((lab.stored(), lab.log("s").ends().len()), (1, 2));
}

fn a_damaged_session_is_refused(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one")]));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    driver.run("a", "s", "hello");
    driver.close("a");
    let file: PathBuf = lab.log("s").path;
    let text = std::fs::read_to_string(&file).expect("a log");
    let damaged = text.replacen("\"turn/start\"", "\"turn/st", 1);
    std::fs::write(&file, &damaged).expect("a file");
    driver.open("b", &lab.options(&server)).ok();
    let refused = driver.resume("b", "s");
    assert!(!refused.refusal().is_empty());
    let prompted =
        driver.ask(serde_json::json!({"op": "run", "harness": "b", "session": "s", "input": "hello"}));
    assert!(prompted.refusal().contains("already exists"), "{prompted:?}");
    driver.close("b");
    assert_eq!(std::fs::read_to_string(&file).expect("a log"), damaged);
    assert_eq!(server.requests().len(), 1);
}
