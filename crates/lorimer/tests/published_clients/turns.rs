//! Turns, sessions beside each other, and what is told of them.

use serde_json::json;

use crate::driver::{Client, Driver};
use crate::lab::Lab;
use crate::run::Run;
use crate::server::{Server, ask, say};

with_both_clients!(
    a_file_is_read,
    a_command_runs,
    turns_follow_each_other,
    sessions_run_beside_each_other,
    long_and_foreign_texts_arrive,
    prompts_of_one_session_wait_for_each_other,
    what_no_model_can_be_sent_is_refused,
);

fn a_file_is_read(client: Client) {
    let server = Server::scripted(&[ask("read", json!({"file_path": "notes.txt"})), say("It says: heron.")]);
    let lab = Lab::new();
    lab.put("notes.txt", "heron\n");
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    let run = driver.run("a", "s", "What is in notes.txt?");
    assert_eq!(run.text, "It says: heron.");
    assert_eq!(run.reason(), &json!({"kind": "completed"}));
    assert!(run.results()[0].contains("heron"), "{:?}", run.results());
    insta::allow_duplicates! { insta::assert_snapshot!(run.order().join(" "), @"agent/inbox/spliced [running] turn/start agent/inbox/spliced step/start user/message user/message session/title request/header request/context assistant/chunk assistant/message tool/call lorimer/fs-observed tool/result step/end step/start assistant/chunk assistant/message step/end turn/end [idle]"); }
    let positions: Vec<u64> = run.events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(positions, (0..run.events.len() as u64).collect::<Vec<_>>());
    driver.close("a");
    lab.assert_nothing_runs();
    // What the client was told is what was kept.
    assert_eq!(lab.log("s").events, run.events);
}

fn a_command_runs(client: Client) {
    let command = json!({"command": "echo $((6 * 7)) > out.txt; pwd", "description": "Count"});
    let server = Server::scripted(&[ask("bash", command), say("done")]);
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.unfenced(&server)).ok();
    let run = driver.run("a", "s", "count");
    assert_eq!(run.text, "done");
    assert!(run.results()[0].contains(&lab.workspace().display().to_string()), "{:?}", run.results());
    assert_eq!(std::fs::read_to_string(lab.workspace().join("out.txt")).expect("a file"), "42\n");
    driver.close("a");
}

fn turns_follow_each_other(client: Client) {
    let server = Server::scripted(&[say("one"), say("two")]);
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    assert_eq!(driver.run("a", "s", "first").text, "one");
    let second = driver.run("a", "s", "second");
    assert_eq!(second.text, "two");
    assert_eq!(second.of_type("turn/start"), [&json!({"turn": 2})]);
    let messages = server.last_messages();
    for text in ["first", "one", "second"] {
        assert!(messages.iter().any(|message| message["content"] == text), "{text}: {messages:?}");
    }
    driver.close("a");
    assert_eq!(lab.log("s").ends().len(), 2);
}

fn sessions_run_beside_each_other(client: Client) {
    // Each session's command waits for the other's, so neither ends unless both run.
    let meet = "mktemp here.XXXXXX; until [ $(ls here.* | wc -l) -eq 2 ]; do sleep 0.05; done; echo met";
    let server =
        Server::scripted(&[ask("bash", json!({"command": meet, "description": "Meet"})), say("done")]);
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.unfenced(&server)).ok();
    let sessions = ["left", "right"];
    for session in sessions {
        driver.begin(session, "a", session, &format!("I am {session}."));
    }
    for session in sessions {
        let run = Run::of(driver.wait(session).ok());
        assert_eq!(run.text, "done");
        assert!(run.results()[0].contains("met"), "{:?}", run.results());
        // A run has what its own session was told, and nothing of the other's.
        assert!(run.notifications.iter().all(|notification| notification["params"]["sessionId"] == session));
        assert_eq!(run.of_type("user/message")[0]["content"][0]["text"], format!("I am {session}."));
    }
    driver.close("a");
    assert_eq!(lab.stored(), 2);
}

fn long_and_foreign_texts_arrive(client: Client) {
    let foreign = "Grüße, 世界 🦀 \u{2028} \u{0} \\ \"q\" e\u{301}";
    let long = "0123456789abcdef".repeat(5 << 16);
    let server = Server::scripted(&[say(foreign), say("long")]);
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    let run = driver.run("a", "s-ü", foreign);
    assert_eq!(run.text, foreign);
    assert_eq!(run.of_type("user/message")[0]["content"][0]["text"], foreign);
    assert_eq!(driver.run("a", "s-ü", &long).text, "long");
    let messages = server.last_messages();
    for text in [foreign, &long] {
        assert!(messages.iter().any(|message| message["content"] == text));
    }
    driver.close("a");
    assert_eq!(lab.log("s-ü").ends().len(), 2);
}

fn prompts_of_one_session_wait_for_each_other(client: Client) {
    let server = Server::scripted(&[say("one"), say("two"), say("three")]);
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    let tasks = ["x", "y", "z"];
    for task in tasks {
        driver.begin(task, "a", "s", task);
    }
    for task in tasks {
        let run = Run::of(driver.wait(task).ok());
        // A run ends when the session is idle, whoever else prompted it.
        assert!(["one", "two", "three"].contains(&run.text.as_str()), "{run:?}");
        assert_eq!(run.reason(), &json!({"kind": "completed"}));
    }
    driver.close("a");
    let log = lab.log("s");
    let mut asked: Vec<&str> = log
        .of("user/message")
        .iter()
        .filter(|message| message["source"]["kind"] == "user")
        .filter_map(|message| message["content"][0]["text"].as_str())
        .collect();
    asked.sort_unstable();
    assert_eq!((asked.as_slice(), log.ends().len()), (&tasks[..], 3));
}

fn what_no_model_can_be_sent_is_refused(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("fine")]));
    let mut driver = Driver::start(client);
    driver.open("a", &lab.options(&server)).ok();
    let text = json!({"type": "text", "text": "look"});
    let mut refusals = Vec::new();
    for wrong in [json!({"type": "video", "url": "x"}), json!({"type": "text"}), json!("text")] {
        let ask = json!({"op": "run", "harness": "a", "session": "s", "input": [text, wrong]});
        refusals.push(driver.ask(ask).refusal().to_owned());
    }
    insta::allow_duplicates! { insta::assert_snapshot!(refusals.join("\n"), @r#"
    session/prompt: block 2 (video) is of no known type or lacks a field; send {"type":"text","text":…}
    session/prompt: block 2 (text) is of no known type or lacks a field; send {"type":"text","text":…}
    session/prompt: block 2 (no type) is of no known type or lacks a field; send {"type":"text","text":…}
    "#); }
    let run =
        Run::of(driver.ask(json!({"op": "run", "harness": "a", "session": "s", "input": [text, text]})).ok());
    assert_eq!(run.text, "fine");
    driver.close("a");
    assert_eq!(server.requests().len(), 1);
}
