//! Frames: cut, glued, broken, long, and with ids of every kind.

use serde_json::{Value, json};

use crate::client::{Client, Lab};

fn text(lab: &Lab) -> Client {
    lab.ready(json!({}))
}

#[test]
fn frames_may_be_cut_and_glued_anywhere() {
    let lab = Lab::new(json!([{"text": "grüße 🦀"}]));
    let mut client = text(&lab);
    let prompt = json!({"jsonrpc": "2.0", "id": "ä", "method": "session/prompt", "params": {
        "sessionId": "s", "contentBlocks": [{"type": "text", "text": "schön 🦀"}]}});
    for byte in format!("{prompt}\r\n").bytes() {
        client.write([byte]);
    }
    let inserted = client.wait_event("s", "agent/inbox/spliced");
    assert_eq!(inserted["inserted"][0]["content"][0]["text"], "schön 🦀");
    assert!(client.answer_to("ä")["result"]["messageId"].is_string());
    let reply = client.wait_event("s", "assistant/message");
    assert_eq!(reply["message"]["content"][0]["text"], "grüße 🦀");
    let request = |id: u64| json!({"id": id, "method": "session/list"}).to_string();
    client.write(format!("\n\n{}\n{}\r\n \n{}", request(101), request(102), request(103)));
    for id in [101, 102] {
        assert!(client.answer_to(id)["result"]["sessions"].is_array());
    }
    client.write("\n");
    client.answer_to(103);
    client.finish();
}

#[test]
fn junk_is_dropped_and_disturbs_nothing() {
    let lab = Lab::new(json!([{"text": "fine"}]));
    let mut client = text(&lab);
    let junk: [&[u8]; 8] = [
        b"hello",
        b"[{\"id\":1,\"method\":\"session/list\"}]",
        b"{\"id\":5",
        b"{}",
        b"\xff\xfe{\"id\":6,\"method\":\"session/list\"}",
        b"{\"id\":null,\"method\":\"session/list\"}",
        b"{\"method\":\"some/notification\",\"params\":{}}",
        b"{\"id\":\"lorimer-1\",\"result\":{\"outcome\":\"allowed-once\"}}",
    ];
    for line in junk {
        client.write([line, b"\n"].concat());
    }
    client.prompt("s", "go");
    client.wait_idle("s");
    client.hang_up();
    let rest = client.rest();
    assert!(rest.iter().all(|frame| frame.get("id").is_none()), "{rest:?}");
    let ended = client.ended();
    assert_eq!(
        (ended.code, ended.stderr.matches("a line was dropped").count()),
        (Some(0), 5),
        "{}",
        ended.stderr
    );
}

#[test]
fn bytes_after_the_last_line_end_are_no_request() {
    let lab = Lab::new(json!([{"text": "never"}]));
    let mut client = text(&lab);
    client.write(r#"{"id":9,"method":"session/list"}"#);
    client.hang_up();
    assert_eq!(client.rest(), Vec::<Value>::new());
    assert_eq!(client.ended().code, Some(0));
}

#[test]
fn ids_come_back_as_they_were_and_parameters_are_lenient() {
    let lab = Lab::new(json!([{"text": "fine"}]));
    let mut client = lab.start();
    let answer = |client: &mut Client, line: &str| {
        client.write(format!("{line}\n"));
        client.read().expect("an answer").to_string()
    };
    let error = |id: &str, message: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"{message}"}}}}"#)
    };
    let unknown = "unknown DeepSeek Harness SDK runtime method: no/such";
    for id in ["7", "-1", "1.5", "\"7\"", "\"\"", "\"req_ä\""] {
        assert_eq!(
            answer(&mut client, &format!(r#"{{"id":{id},"method":"no/such","extra":[1]}}"#)),
            error(id, unknown)
        );
    }
    for params in ["[]", "3", "null", "\"x\""] {
        let line = format!(r#"{{"id":1,"method":"session/list","params":{params}}}"#);
        assert_eq!(answer(&mut client, &line), r#"{"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}"#);
    }
    let line = r#"{"id":2,"method":"session/list","params":{"later":{"deep":[1,2]}}}"#;
    assert_eq!(answer(&mut client, line), r#"{"jsonrpc":"2.0","id":2,"result":{"sessions":[]}}"#);
    let line = r#"{"id":3,"method":"session/fork","params":{"turn":1}}"#;
    let missing = answer(&mut client, line);
    assert!(missing.contains("session/fork: missing field `sessionId`"), "{missing}");
    client.finish();
}

#[test]
fn a_prompt_of_five_megabytes_arrives_whole() {
    let lab = Lab::new(json!([{"text": "long"}]));
    let mut client = text(&lab);
    let long = "0123456789abcde\n".repeat(5 * 1024 * 1024 / 16);
    let id = client.prompt("s", &long);
    client.wait_idle("s");
    client.finish();
    let message = lab.logged("s", "user/message").into_iter().find(|message| message["id"] == id.as_str());
    assert!(message.expect("logged")["content"][0]["text"] == long.as_str());
}

#[test]
fn a_frame_over_the_limit_is_refused_and_the_next_one_served() {
    let lab = Lab::new(json!([{"text": "short"}]));
    let mut client = lab.start_with(&["sdk"], &[("LORIMER_RPC__MAX_FRAME_BYTES", "10000")]);
    client.ask("initialize", lab.route());
    let long = json!({"sessionId": "s", "contentBlocks": [{"type": "text", "text": "x".repeat(1_000_000)}]});
    // The id comes first in a frame of a published client, and is found in what is kept.
    let frame = format!(r#"{{"jsonrpc":"2.0","id":"long","method":"session/prompt","params":{long}}}"#);
    client.write(format!("{frame}\n"));
    let answer = client.answer_to("long");
    assert_eq!(answer["error"]["message"], "the request is longer than 10000 bytes; send less");
    client.prompt("s", "short");
    client.wait_idle("s");
    client.finish();
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_is_for_frames_alone() {
    let lab = Lab::new(json!([{"text": "fine"}]));
    let client = lab.ready(json!({}));
    // Whatever a library writes to standard output ends where standard error does.
    let of = |number: u32| std::fs::read_link(format!("/proc/{}/fd/{number}", client.child.id()));
    match (of(1), of(2)) {
        (Ok(out), Ok(err)) => assert_eq!(out, err),
        // The program hides its own files from other users, root not among them.
        (Err(error), _) | (_, Err(error)) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
    client.finish();
}
