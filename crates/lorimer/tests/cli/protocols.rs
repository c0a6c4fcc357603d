//! Both protocols, servers of the settings, and what is said when a server does not do what it should.

use rustix::io::Errno;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Call, KEY, Lab};
use crate::prefix::{long_script, notes};
use crate::server::{Server, ask, check, done, say, text};

#[test]
fn thirty_steps_on_messages_with_a_cancel_and_a_resume() {
    let (lab, server) = (Lab::new(), Server::scripted(&long_script()));
    lab.put("notes.txt", notes());
    lab.put("AGENTS.md", "Mind the notes.\n");
    let full = ["--json", "--permission-mode", "danger-full-access"];
    let mut running = lab.run_messages(&server, &full).and(&["read it all"]).start();
    running.until(&["\"tool/call\"", "sleep 600"]);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);

    let ended = lab.run_messages(&server, &full).and(&["--continue", "go on"]).end();
    ended.answer();
    assert_eq!(ended.result()["text"], "done");
    assert_eq!(server.requests().len(), 31);
    assert!(server.paths().iter().all(|path| path == "/v1/messages"));
    check("prefix.py", &server.request_log());
    check("pairs.py", &server.request_log());
    lab.log().assert_closed();
}

/// Turns with reasoning and two calls each; every third answers.
fn thinking_script() -> Vec<Value> {
    let turn = |number: usize| match number % 3 {
        2 => json!({"reasoning": format!("Thought {number}."), "text": format!("answer {number}")}),
        _ => json!({"reasoning": format!("Thought {number}."), "text": format!("Look {number}."), "calls": [
            {"name": "glob", "arguments": {"pattern": format!("*{number}")}},
            {"name": "read", "arguments": {"file_path": "notes.txt", "offset": number + 1}},
        ]}),
    };
    (0..12).map(turn).collect()
}

#[test]
fn a_session_goes_on_with_the_other_protocol_and_back() {
    let (lab, server) = (Lab::new(), Server::scripted(&thinking_script()));
    lab.put("notes.txt", notes());
    let chat = |session: &str| {
        lab.run(&server, &["-m", "deepseek/deepseek-v4-pro", "--session", session, "more"]).end()
    };
    let messages = |session: &str| lab.run_messages(&server, &["--session", session, "more"]).end();
    assert_eq!(lab.run_messages(&server, &["begin"]).end().answer(), "answer 2\n");
    let id = lab.log().id();
    assert_eq!(chat(&id).answer(), "answer 5\n");
    assert_eq!(messages(&id).answer(), "answer 8\n");
    assert_eq!(chat(&id).answer(), "answer 11\n");
    check("pairs.py", &server.request_log());
    let paths = server.paths();
    assert_eq!((paths.len(), paths.iter().filter(|path| *path == "/v1/messages").count()), (12, 6));
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.ends(), vec![&json!({"kind": "completed"}); 4]);
}

#[test]
fn thinking_goes_back_in_place_with_its_signature() {
    let (lab, server) = (Lab::new(), Server::scripted(&thinking_script()));
    lab.put("notes.txt", notes());
    lab.run_messages(&server, &["begin"]).end().answer();
    lab.run_messages(&server, &["--continue", "more"]).end().answer();
    let sent = server.last_messages();
    let replies: Vec<&Value> = sent.iter().filter(|message| message["role"] == "assistant").collect();
    assert_eq!(replies.len(), 5);
    for (number, reply) in replies.iter().enumerate() {
        let blocks = reply["content"].as_array().expect("blocks");
        let thinking =
            json!({"type": "thinking", "thinking": format!("Thought {number}."), "signature": "c2ln"});
        assert_eq!(blocks[0], thinking);
        let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["type"].as_str()).collect();
        let calls = if number % 3 == 2 { &[][..] } else { &["tool_use", "tool_use"] };
        assert_eq!(kinds, [&["thinking", "text"], calls].concat());
    }
}

#[test]
fn the_key_goes_where_the_protocol_wants_it() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.run_messages(&server, &["hi"]).end().answer();
    let headers = server.last_headers();
    assert_eq!((headers["x-api-key"].as_str(), headers["anthropic-version"].as_str()), (KEY, "2023-06-01"));
    assert!(!headers.contains_key("authorization"));
    lab.run(&server, &["hi"]).end().answer();
    let headers = server.last_headers();
    assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
    assert!(!headers.contains_key("x-api-key"));
}

/// Settings with a server of one's own that has prices.
fn mine(server: &Server, protocol: &str) -> String {
    format!(
        "[providers.mine]\nname = \"My server\"\nprotocol = \"{protocol}\"\nbase_url = \"{}\"\n\
         key_variable = \"MY_KEY\"\nmax_tokens = 321\n\n[[providers.mine.models]]\nid = \"big\"\n\
         price_input = 1.0\nprice_output = 4.0\n",
        server.url()
    )
}

#[test]
fn a_server_of_ones_own_speaks_either_protocol() {
    for (protocol, path) in [("chat", "/chat/completions"), ("messages", "/v1/messages")] {
        let (lab, server) =
            (Lab::new(), Server::scripted(&[ask("glob", json!({"pattern": "*"})), say("ok")]));
        lab.configure(&mine(&server, protocol));
        let run = |arguments: &[&str]| lab.quick(arguments).variable("MY_KEY", KEY);
        assert_eq!(run(&["-m", "mine", "--max-cost", "1", "hi"]).end().answer(), "ok\n");
        assert_eq!(server.paths(), [path, path]);
        let sent = &server.requests()[0];
        assert_eq!((&sent["model"], &sent["max_tokens"]), (&json!("big"), &json!(321)));
        assert_eq!(run(&["-m", "mine/a/b:c", "hi"]).end().answer(), "ok\n");
        assert_eq!(server.requests()[2]["model"], "a/b:c");
        let refused = lab.quick(&["-m", "mine", "hi"]).end();
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused.complaint(2), @"lorimer: mine needs a key: set MY_KEY, or run with `-m offline` for the keyless demo model");
        }
    }
}

#[test]
fn a_preset_needs_a_key_and_a_model() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    let place = format!("providers.openai.base_url={}/v1", server.url());
    let run = |model: &str| lab.quick(&["-m", model, "-c", &place, "hi"]).variable("OPENAI_API_KEY", KEY);
    insta::assert_snapshot!(run("openai").end().complaint(2), @"lorimer: openai cannot be used: it lists no model; name one: -m openai/MODEL");
    assert_eq!(run("openai/gpt-x").end().answer(), "ok\n");
    assert_eq!(
        (server.paths(), &server.requests()[0]["model"]),
        (vec!["/v1/chat/completions".to_owned()], &json!("gpt-x"))
    );
    insta::assert_snapshot!(run("openai/gpt-x").without("OPENAI_API_KEY").end().complaint(2), @"lorimer: openai needs a key: set OPENAI_API_KEY, or run with `-m offline` for the keyless demo model");
    assert_eq!(server.requests().len(), 1);
}

/// A call on either protocol that is not repeated.
fn once<'a>(lab: &'a Lab, url: &str, messages: bool) -> Call<'a> {
    let (model, name) = if messages { ("anthropic", "ANTHROPIC") } else { ("deepseek", "DEEPSEEK") };
    lab.quick(&["-m", model, "-c", "retry.max_retries=0", "hi"])
        .variable(&format!("{name}_API_KEY"), KEY)
        .variable(&format!("{name}_BASE_URL"), url)
}

/// What is said of a failure: one line, without the key.
fn said(url: &str, messages: bool) -> String {
    let lab = Lab::new();
    let ended = once(&lab, url, messages).end();
    assert_eq!(ended.stdout, "");
    let line = ended.complaint(1).replace(url, "[URL]");
    assert!(!line.contains(KEY), "{line}");
    line.strip_prefix("lorimer: ").expect("the program's name").to_owned()
}

/// Answers with a status, as the servers give them.
fn refusals() -> Vec<(&'static str, Value)> {
    let answer = |status: u16, message: &str| {
        let body = json!({"error": {"message": message, "type": "x"}}).to_string();
        json!({"status": status, "headers": {"content-type": "application/json"}, "body": body})
    };
    let page = json!({"status": 200, "headers": {"content-type": "text/html"}, "body": "<html><body>Welcome</body></html>"});
    vec![
        ("401", answer(401, &format!("the key {KEY} is wrong"))),
        ("402", answer(402, "Insufficient Balance")),
        ("404", answer(404, "no such model")),
        ("429", answer(429, "slow down")),
        ("500", answer(500, "oops")),
        ("page", page),
    ]
}

fn all_said(messages: bool) -> String {
    let mut lines: Vec<String> = refusals()
        .into_iter()
        .map(|(name, answer)| {
            let server = Server::raw(&[vec![answer]]);
            format!("{name}: {}", said(&server.url(), messages))
        })
        .collect();
    // No program of a person may listen there.
    let refused = said("http://127.0.0.1:1", messages);
    let number = format!("os error {}", Errno::CONNREFUSED.raw_os_error());
    lines.push(format!("nobody: {}", refused.replace(&number, "os error [N]")));
    let other = if messages { vec![text("hi").into(), done().into()] } else { messages_stream() };
    lines.push(format!("other: {}", said(&Server::raw(&[other]).url(), messages)));
    lines.join("\n")
}

/// A good stream of the Messages protocol.
fn messages_stream() -> Vec<Value> {
    let frame = |kind: &str, body: Value| {
        let mut body = body;
        body["type"] = kind.into();
        Value::from(format!("event: {kind}\ndata: {body}\n\n"))
    };
    vec![
        frame(
            "message_start",
            json!({"message": {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 3, "output_tokens": 0}}}),
        ),
        frame("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}})),
        frame("content_block_delta", json!({"index": 0, "delta": {"type": "text_delta", "text": "hi"}})),
        frame("content_block_stop", json!({"index": 0})),
        frame("message_delta", json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}})),
        frame("message_stop", json!({})),
    ]
}

#[test]
fn what_goes_wrong_on_chat_completions_is_told() {
    insta::assert_snapshot!(all_said(false), @"
    401: DeepSeek: the key *** is wrong ([URL]/chat/completions refused the key: check DEEPSEEK_API_KEY) [AUTH]; go on with `lorimer run --session [SHORT-ID] -m deepseek`
    402: DeepSeek: Insufficient Balance (the account has nothing left to spend: top it up, or choose another model with -m) [QUOTA]; go on with `lorimer run --session [SHORT-ID] -m deepseek`
    404: DeepSeek: no such model (asked [URL]/chat/completions: check the base URL and the model id, and that the server speaks chat completions) [HTTP_404]; go on with `lorimer run --session [SHORT-ID] -m deepseek`
    429: DeepSeek: slow down (too many requests: go on in a while) [RATE_LIMIT]; go on with `lorimer run --session [SHORT-ID] -m deepseek`
    500: DeepSeek: oops (trouble at [URL]/chat/completions: go on later) [SERVER]; go on with `lorimer run --session [SHORT-ID] -m deepseek`
    page: DeepSeek: the server answered 200 with something other than an event stream (check the base URL): <html><body>Welcome</body></html> [MALFORMED_RESPONSE]; go on with `lorimer run --session [SHORT-ID] -m deepseek`
    nobody: DeepSeek: nothing answers at [URL]/chat/completions: check the base URL and that the server runs (Connection refused (os error [N])) [TRANSPORT]; go on with `lorimer run --session [SHORT-ID] -m deepseek`
    other: DeepSeek: the server answers in the Messages protocol, but chat completions was expected: correct the base URL, or the protocol that is configured for this provider [MALFORMED_RESPONSE]; go on with `lorimer run --session [SHORT-ID] -m deepseek`
    ");
}

#[test]
fn what_goes_wrong_on_messages_is_told() {
    insta::assert_snapshot!(all_said(true), @"
    401: Anthropic: the key *** is wrong ([URL]/v1/messages refused the key: check ANTHROPIC_API_KEY) [AUTH]; go on with `lorimer run --session [SHORT-ID] -m anthropic`
    402: Anthropic: Insufficient Balance (the account has nothing left to spend: top it up, or choose another model with -m) [QUOTA]; go on with `lorimer run --session [SHORT-ID] -m anthropic`
    404: Anthropic: no such model (asked [URL]/v1/messages: check the base URL and the model id, and that the server speaks the Messages protocol) [HTTP_404]; go on with `lorimer run --session [SHORT-ID] -m anthropic`
    429: Anthropic: slow down (too many requests: go on in a while) [RATE_LIMIT]; go on with `lorimer run --session [SHORT-ID] -m anthropic`
    500: Anthropic: oops (trouble at [URL]/v1/messages: go on later) [SERVER]; go on with `lorimer run --session [SHORT-ID] -m anthropic`
    page: Anthropic: the server answered 200 with something other than an event stream (check the base URL): <html><body>Welcome</body></html> [MALFORMED_RESPONSE]; go on with `lorimer run --session [SHORT-ID] -m anthropic`
    nobody: Anthropic: nothing answers at [URL]/v1/messages: check the base URL and that the server runs (Connection refused (os error [N])) [TRANSPORT]; go on with `lorimer run --session [SHORT-ID] -m anthropic`
    other: Anthropic: the server answers in chat completions, but the Messages protocol was expected: correct the base URL, or the protocol that is configured for this provider [MALFORMED_RESPONSE]; go on with `lorimer run --session [SHORT-ID] -m anthropic`
    ");
}

#[test]
fn calls_that_were_cancelled_together_all_have_results() {
    let wait = |number: usize| json!({"name": "bash", "arguments": {"command": format!("sleep 60{number}"), "description": "Wait"}});
    let turns = [json!({"reasoning": "Wait.", "calls": [wait(0), wait(1), wait(2)]}), say("on")];
    for messages in [true, false] {
        let (lab, server) = (Lab::new(), Server::scripted(&turns));
        let run = |arguments: &[&str]| {
            let full = ["--json", "--permission-mode", "danger-full-access"];
            if messages {
                lab.run_messages(&server, &full).and(arguments)
            } else {
                lab.run(&server, &full).and(arguments)
            }
        };
        let mut running = run(&["go"]).start();
        running.until(&["\"tool/call\"", "sleep 600"]);
        running.signal(Signal::INT);
        assert_eq!(running.end().code, 130);
        let ended = run(&["--continue", "on"]).end();
        ended.answer();
        assert_eq!(ended.result()["text"], "on");
        check("prefix.py", &server.request_log());
        check("pairs.py", &server.request_log());
        let log = lab.log();
        log.assert_closed();
        assert_eq!(log.results().len(), 3);
    }
}

#[test]
fn a_stream_of_messages_that_breaks_off_is_asked_for_again() {
    let cut = messages_stream()[..3].to_vec();
    let (lab, server) = (Lab::new(), Server::raw(&[cut, messages_stream()]));
    assert_eq!(lab.run_messages(&server, &["go"]).end().answer(), "hi\n");
    assert_eq!((server.requests().len(), lab.log().of("llm/retry").len()), (2, 1));
    assert_eq!(server.requests()[0], server.requests()[1]);
}

#[test]
fn a_cancelled_reply_on_messages_goes_on() {
    let mut hang = messages_stream()[..1].to_vec();
    let thinking = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}});
    let thought = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Half a thought"}});
    hang.extend([thinking, thought].map(|data| format!("event: x\ndata: {data}\n\n").into()));
    hang.push(json!({"ms": 600_000}));
    let (lab, server) = (Lab::new(), Server::raw(&[hang, messages_stream()]));
    let mut running = lab.run_messages(&server, &["--json", "go"]).start();
    running.until(&["Half a thought"]);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    assert_eq!(lab.run_messages(&server, &["--continue", "on"]).end().answer(), "hi\n");
    check("prefix.py", &server.request_log());
    check("pairs.py", &server.request_log());
    // Without its signature it would be refused.
    assert!(!server.requests()[1].to_string().contains("Half a thought"));
}
