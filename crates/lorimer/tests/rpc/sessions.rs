//! Sessions: turns, order, resuming, working directories, listing, forking, deleting, cancelling.

use serde_json::{Value, json};

use crate::client::{Client, Lab};

fn read_then(text: &str) -> Value {
    json!([
        {"calls": [{"name": "read", "arguments": {"file_path": "notes.txt"}}]},
        {"text": text},
        {"text": "second"}
    ])
}

/// Types of a session's events and statuses in the order they were told, without the pieces of replies.
fn story(frames: &[Value], session: &str) -> Vec<String> {
    let of_session = frames.iter().filter(|frame| frame["params"]["sessionId"] == session);
    of_session
        .filter_map(|frame| {
            let params = &frame["params"];
            let kind = params["event"]["type"].as_str().or(params["status"].as_str())?;
            (kind != "assistant/chunk").then(|| kind.to_owned())
        })
        .collect()
}

#[test]
fn a_turn_tells_its_events_in_order_and_the_receipt_follows_its_event() {
    let lab = Lab::new(read_then("done"));
    lab.put("notes.txt", "alpha\n");
    let mut client = lab.ready(json!({}));
    let prompt = json!({"sessionId": "s", "contentBlocks": [{"type": "text", "text": "read it"}]});
    let id = client.send("session/prompt", prompt);
    let mut frames = Vec::new();
    loop {
        let frame = client.read().expect("a frame");
        let last = frame["params"]["status"] == "idle";
        frames.push(frame);
        if last {
            break;
        }
    }
    let receipt = frames.iter().position(|frame| frame["id"] == id).expect("a receipt");
    let spliced = &frames[0]["params"]["event"];
    assert_eq!((spliced["type"].as_str(), spliced["seq"].as_u64()), (Some("agent/inbox/spliced"), Some(0)));
    assert_eq!(spliced["data"]["inserted"][0]["id"], frames[receipt]["result"]["messageId"]);
    insta::assert_snapshot!(story(&frames, "s").join("\n"), @r"
    agent/inbox/spliced
    running
    turn/start
    agent/inbox/spliced
    step/start
    user/message
    user/message
    session/title
    request/header
    request/context
    assistant/message
    tool/call
    lorimer/fs-observed
    tool/result
    step/end
    step/start
    assistant/message
    step/end
    turn/end
    idle
    ");
    client.finish();
    // What was told is what is in the log, byte for byte but for rows that pack pieces.
    let told = frames.iter().filter(|frame| frame["params"]["event"]["type"] == "tool/result");
    let told: Vec<&Value> = told.map(|frame| &frame["params"]["event"]["data"]).collect();
    assert_eq!(told, lab.logged("s", "tool/result").iter().collect::<Vec<_>>());
}

#[test]
fn overlapping_prompts_are_turns_of_their_own_and_sessions_work_side_by_side() {
    let lab = Lab::new(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]));
    let mut client = lab.ready(json!({}));
    for session in ["a", "b", "a", "b", "a"] {
        let prompt = json!({"sessionId": session, "contentBlocks": [{"type": "text", "text": "go"}]});
        client.send("session/prompt", prompt);
    }
    for (session, turns) in [("a", 3), ("b", 2)] {
        for _ in 0..turns {
            client.wait_event(session, "turn/end");
        }
        client.wait_idle(session);
    }
    client.finish();
    let texts = |session| {
        let replies = lab.logged(session, "assistant/message");
        replies.iter().map(|reply| reply["message"]["content"][0]["text"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts("a"), ["one", "two", "three"]);
    assert_eq!(texts("b"), ["one", "two"]);
}

#[test]
fn a_stored_session_is_resumed_and_never_replaced() {
    let lab = Lab::new(json!([{"text": "one"}, {"text": "two"}]));
    let mut first = lab.ready(json!({}));
    first.prompt("s", "start");
    first.wait_idle("s");
    assert_eq!(
        first.refused("session/resume", json!({"sessionId": "s"})),
        "SDK session is already open or opening: s"
    );
    let mut second = lab.ready(json!({}));
    let held = second.refused("session/resume", json!({"sessionId": "s"}));
    assert!(held.starts_with("session \"s\" is in use by process "), "{held}");
    first.finish();
    let exists = second.refused("session/prompt", json!({"sessionId": "s", "contentBlocks": []}));
    assert_eq!(exists, "session \"s\" already exists (restore it with session/resume)");
    let unknown = second.refused("session/resume", json!({"sessionId": "unknown"}));
    assert_eq!(unknown, "session \"unknown\" not found");
    assert_eq!(second.ask("session/resume", json!({"sessionId": "s"})), json!({}));
    second.prompt("s", "go on");
    second.wait_idle("s");
    second.finish();
    let replies = lab.logged("s", "assistant/message");
    assert_eq!(replies[1]["message"]["content"][0]["text"], "two");
    assert_eq!(lab.logged("s", "turn/start"), [json!({"turn": 1}), json!({"turn": 2})]);
}

#[test]
fn nothing_works_before_initialize_and_wrong_routes_name_the_right_ones() {
    let lab = Lab::new(json!([{"text": "one"}]));
    let mut client = lab.start();
    for method in ["session/prompt", "session/resume", "session/working-directory/get"] {
        let text = client.refused(method, json!({"sessionId": "s", "contentBlocks": []}));
        assert_eq!(text, "SDK server is not initialized");
    }
    let mut refused = |provider: &str, model: &str, more: Value| {
        let mut params = json!({"cwd": lab.workspace(), "provider": provider, "model": model});
        for (key, value) in more.as_object().expect("an object") {
            params[key] = value.clone();
        }
        client.refused("initialize", params).replace(&lab.root().display().to_string(), "[ROOT]")
    };
    let lines = [
        refused("deepsek", "m", json!({})),
        refused("deepseek-official", "deepseek-v4-flush", json!({})),
        refused("deepseek-official", "deepseek-v4-flash", json!({"reasoningEffort": "hihg"})),
        refused("deepseek-official", "deepseek-v4-flash", json!({"maxTokens": 0})),
        refused("deepseek-official", "deepseek-v4-flash", json!({"maxTokens": 1.5})),
        refused("deepseek-official", "deepseek-v4-flash", json!({"cwd": "nowhere"})),
        refused("offline", "/no/such/script.json", json!({})),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    let ready = client.ask("initialize", lab.route());
    assert_eq!(ready["serverInfo"], json!({"name": "deepseek-harness-sdk-runtime", "version": "0.0.1"}));
    assert_eq!(
        (&ready["runtime"]["name"], &ready["runtime"]["cwd"]),
        (&json!("lorimer"), &json!(lab.workspace()))
    );
    client.prompt("s", "go");
    client.wait_idle("s");
    client.finish();
}

#[test]
fn a_session_works_where_it_is_told_to() {
    let lab = Lab::new(json!([
        {"calls": [
            {"name": "read", "arguments": {"file_path": "notes.txt"}},
            {"name": "bash", "arguments": {"command": "pwd", "description": "Where"}},
            {"name": "write", "arguments": {"file_path": "../up.txt", "content": "kept inside"}}
        ]},
        {"text": "done"}
    ]));
    std::fs::create_dir(lab.workspace().join("sub")).expect("a folder");
    lab.put("sub/notes.txt", "below\n");
    let mut client = lab.ready(json!({"permissionMode": "danger-full-access"}));
    let id = json!({"sessionId": "s"});
    assert_eq!(client.ask("session/working-directory/get", id.clone()), json!({"cwd": lab.workspace()}));
    let mut set = |path: &str| {
        let id = client.send("session/working-directory/set", json!({"sessionId": "s", "path": path}));
        let answer = client.answer_to(id);
        answer["error"]["message"]
            .as_str()
            .map_or_else(|| answer["result"]["cwd"].clone(), |text| json!(text))
    };
    assert_eq!(set("nowhere"), "working-directory: directory does not exist: \"nowhere\"");
    assert_eq!(set("sub/notes.txt"), "working-directory: directory does not exist: \"sub/notes.txt\"");
    assert_eq!(set(""), "working-directory: cd must not be empty");
    assert_eq!(set("sub"), json!(lab.workspace().join("sub")));
    assert_eq!(set(".."), json!(lab.workspace()));
    assert_eq!(set("sub"), json!(lab.workspace().join("sub")));
    client.prompt("s", "look");
    client.wait_idle("s");
    client.finish();
    let results = lab.logged("s", "tool/result");
    let text = |nth: usize| results[nth]["message"]["content"][0]["content"][0]["text"].to_string();
    assert!(text(0).contains("1: below"), "{}", text(0));
    assert!(text(1).contains("/ws/sub\\n"), "{}", text(1));
    assert_eq!(std::fs::read_to_string(lab.workspace().join("up.txt")).expect("written"), "kept inside");
    let mut again = lab.ready(json!({}));
    again.ask("session/resume", id.clone());
    assert_eq!(
        again.ask("session/working-directory/get", id.clone())["cwd"],
        json!(lab.workspace().join("sub"))
    );
    std::fs::remove_dir_all(lab.workspace().join("sub")).expect("removed");
    assert_eq!(again.ask("session/working-directory/get", id)["cwd"], json!(lab.workspace()));
    again.finish();
}

fn ids(client: &mut Client, params: Value) -> Vec<String> {
    let listed = client.ask("session/list", params);
    let sessions = listed["sessions"].as_array().expect("a list").clone();
    sessions.iter().map(|one| one["sessionId"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn stored_sessions_are_listed_forked_closed_and_deleted() {
    let lab = Lab::new(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]));
    let mut client = lab.ready(json!({}));
    for text in ["first question", "second question"] {
        client.prompt("s", text);
        client.wait_idle("s");
    }
    let listed = client.ask("session/list", json!({"cwd": lab.workspace()}))["sessions"][0].clone();
    assert_eq!((&listed["title"], &listed["open"]), (&json!("first question"), &json!(true)));
    assert_eq!(ids(&mut client, json!({"cwd": "/elsewhere"})), Vec::<String>::new());
    let forked = client.ask("session/fork", json!({"sessionId": "s", "turn": 1}))["sessionId"].clone();
    let missing = client.refused("session/fork", json!({"sessionId": "s", "turn": 9}));
    assert!(missing.contains("turn 9 has not ended"), "{missing}");
    client.ask("session/resume", json!({"sessionId": forked}));
    let forked = forked.as_str().expect("an id").to_owned();
    client.prompt(&forked, "another question");
    client.wait_idle(&forked);
    assert_eq!(client.wait_event(&forked, "assistant/message")["message"]["content"][0]["text"], "two");
    assert_eq!(client.ask("session/close", json!({"sessionId": "s"})), json!({}));
    assert_eq!(client.refused("session/close", json!({"sessionId": "s"})), "session \"s\" is not open");
    assert_eq!(client.refused("session/cancel", json!({"sessionId": "s"})), "session \"s\" is not open");
    client.ask("session/resume", json!({"sessionId": "s"}));
    assert_eq!(client.ask("session/cancel", json!({"sessionId": "s"})), json!({"cancelled": false}));
    assert_eq!(client.ask("session/delete", json!({"sessionId": "s"})), json!({}));
    assert_eq!(client.refused("session/delete", json!({"sessionId": "s"})), "session \"s\" not found");
    assert_eq!(ids(&mut client, json!({})), [forked]);
    client.finish();
}

#[test]
fn a_turn_is_cancelled_and_steered() {
    let lab = Lab::new(json!([
        {"text": "waiting", "calls": [{"name": "bash", "arguments": {"command": "sleep 60", "description": "Wait"}}]},
        {"text": "after"},
        {"text": "last"}
    ]));
    let mut client = lab.ready(json!({"permissionMode": "danger-full-access"}));
    client.prompt("s", "go");
    client.wait_event("s", "tool/call");
    assert_eq!(client.ask("session/cancel", json!({"sessionId": "s"})), json!({"cancelled": true}));
    let end = client.wait_event("s", "turn/end");
    assert_eq!(end["reason"], json!({"kind": "aborted", "reason": {"kind": "user"}}));
    client.wait_idle("s");
    // Without a running turn a message for the next step is a turn of its own.
    let steer = json!({"sessionId": "s", "delivery": "next-step", "contentBlocks": [{"type": "text", "text": "now this"}]});
    client.ask("session/prompt", steer);
    client.wait_idle("s");
    client.finish();
    assert_eq!(lab.logged("s", "turn/start").len(), 2);
}

#[test]
fn a_failed_turn_does_not_keep_the_next_one_from_running() {
    let lab = Lab::new(json!([{"text": "fine"}]));
    lab.script(
        json!({"turns": [{"text": "fine"}], "fail": {"1": {"status": 400, "message": "no such thing"}}}),
    );
    let mut client = lab.ready(json!({}));
    client.prompt("s", "one");
    client.prompt("s", "two");
    let first = client.wait_event("s", "turn/end");
    assert_eq!(first["reason"]["kind"], "error");
    assert!(
        first["reason"]["error"]["message"].as_str().expect("a text").contains("no such thing"),
        "{first}"
    );
    assert_eq!(client.wait_event("s", "turn/end")["reason"]["kind"], "completed");
    client.finish();
}

#[test]
fn what_no_model_can_be_sent_is_refused() {
    let lab = Lab::new(json!([{"text": "fine"}]));
    let mut client = lab.ready(json!({}));
    let text = json!({"type": "text", "text": "look"});
    let mut refused = |wrong: Value| {
        let params = json!({"sessionId": "s", "contentBlocks": [text, wrong]});
        client.refused("session/prompt", params)
    };
    let lines = [refused(json!({"type": "video"})), refused(json!({"type": "text"})), refused(json!("text"))];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    session/prompt: block 2 (video) is of no known type or lacks a field; send {"type":"text","text":…}
    session/prompt: block 2 (text) is of no known type or lacks a field; send {"type":"text","text":…}
    session/prompt: block 2 (no type) is of no known type or lacks a field; send {"type":"text","text":…}
    "#);
    client.prompt("s", "go");
    client.wait_idle("s");
    client.finish();
    assert_eq!(lab.logged("s", "turn/start").len(), 1);
}

#[test]
fn a_session_is_forked_while_it_works() {
    let sleep = json!({"name": "bash", "arguments": {"command": "sleep 60", "description": "Wait"}});
    let lab = Lab::new(json!([{"text": "one"}, {"calls": [sleep]}, {"text": "three"}]));
    let mut client = lab.ready(json!({"permissionMode": "danger-full-access"}));
    client.prompt("s", "first");
    client.wait_idle("s");
    client.prompt("s", "second");
    client.wait_event("s", "tool/call");
    let forked = client.ask("session/fork", json!({"sessionId": "s"}))["sessionId"].clone();
    client.ask("session/resume", json!({"sessionId": forked}));
    client.finish();
    assert_eq!(lab.logged(forked.as_str().expect("an id"), "turn/end").len(), 1);
}

#[test]
fn requests_about_one_session_keep_their_order() {
    let lab = Lab::new(json!([{"text": "one"}, {"text": "two"}]));
    let mut client = lab.ready(json!({}));
    client.prompt("s", "start");
    client.wait_idle("s");
    let id = json!({"sessionId": "s"});
    let deletes = [client.send("session/delete", id.clone()), client.send("session/delete", id.clone())];
    let resume = client.send("session/resume", id.clone());
    assert_eq!(client.answer_to(deletes[0])["result"], json!({}));
    for refused in [deletes[1], resume] {
        assert_eq!(client.answer_to(refused)["error"]["message"], "session \"s\" not found");
    }
    client.prompt("s", "again");
    client.wait_idle("s");
    let ids = [client.send("session/close", id.clone()), client.send("session/resume", id.clone())];
    for id in ids {
        assert_eq!(client.answer_to(id)["result"], json!({}));
    }
    assert_eq!(client.ask("session/cancel", id.clone()), json!({"cancelled": false}));
    let fork_and_delete = [client.send("session/fork", id.clone()), client.send("session/delete", id)];
    for id in fork_and_delete {
        assert!(client.answer_to(id)["error"].is_null());
    }
    client.finish();
}

#[test]
fn what_nobody_can_say_and_names_that_are_too_long_are_refused() {
    let lab = Lab::new(json!([{"text": "one"}]));
    let mut client = lab.ready(json!({}));
    let mut say =
        |blocks: Value| client.refused("session/prompt", json!({"sessionId": "s", "contentBlocks": blocks}));
    for (blocks, why) in [
        (json!([]), "the message is empty"),
        (json!([{"type": "text", "text": " "}]), "the message is empty"),
        (
            json!([{"type": "text", "text": "a"}, {"type": "reasoning", "text": "b"}]),
            "block 2 (reasoning) is nothing that",
        ),
        (
            json!([{"type": "tool-result", "toolCallId": "c", "content": []}]),
            "block 1 (tool-result) is nothing that",
        ),
        (json!([{"type": "video"}]), "block 1 (video) is of no known type"),
    ] {
        let said = say(blocks);
        assert!(said.contains(why), "{said}");
    }
    let long = client.refused("session/resume", json!({"sessionId": "x".repeat(5000)}));
    assert_eq!(long, "a session id has at most 200 bytes");
    client.prompt("s", "fine");
    client.wait_idle("s");
    client.finish();
}
