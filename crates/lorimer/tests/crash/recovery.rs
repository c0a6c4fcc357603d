//! What must hold after a kill: the log, its recovery, and the run that goes on.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use lorimer_protocol::{Event, Payload, SurfaceOp};
use lorimer_session::check_invariants;
use serde_json::Value;

use crate::evidence::{Evidence, calls_in, events_of, whole_lines};
use crate::place::{Place, output};
use crate::script::{ANSWER, Marks, all_call_ids};
use crate::server::{ModelServer, tools_folder};

type Checked = Result<(), String>;

/// Nothing that others can see may come before the log knows of it.
pub fn check_durable_before_effects(evidence: &Evidence, request_log: &Path) -> Checked {
    let (mut called, mut answered) = (Vec::new(), Vec::new());
    for payload in evidence.durable.iter().filter_map(|event| event.payload().ok()) {
        match payload {
            Payload::ToolCall(call) => called.push(call.call_id.to_string()),
            Payload::ToolResult(result) => {
                answered.extend(result.message.tool_result().map(|block| block.tool_call_id.to_string()));
            }
            _ => {}
        }
    }
    for id in evidence.marks.keys() {
        require(called.contains(id), || format!("the body of {id} ran, but its call was not in the log"))?;
    }
    for id in results_sent(request_log)? {
        require(answered.contains(&id), || format!("the result of {id} was sent, but was not in the log"))?;
    }
    Ok(())
}

/// The calls whose results the last request carries.
fn results_sent(request_log: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(request_log).map_err(|error| format!("the requests: {error}"))?;
    let Some(last) = whole_text(&text).lines().next_back() else {
        return Ok(Vec::new());
    };
    let request: Value = serde_json::from_str(last).map_err(|error| format!("the last request: {error}"))?;
    let messages = request["body"]["messages"].as_array().cloned().unwrap_or_default();
    Ok(messages.iter().filter_map(|message| message["tool_call_id"].as_str().map(str::to_owned)).collect())
}

fn whole_text(text: &str) -> &str {
    text.rsplit_once('\n').map_or("", |(whole, _)| whole)
}

/// The killed session can be looked at, which changes nothing.
pub fn check_show(place: &Place, log: &Path, evidence: &Evidence) -> Checked {
    let id = log.parent().and_then(Path::file_name).ok_or("the log has no folder")?;
    let mut command = place.program(0);
    command.args(["sessions", "show"]).arg(id);
    succeed("sessions show", command)?;
    require(read(log)? == evidence.disk, || "`sessions show` changed the log".to_owned())
}

/// The session goes on and comes to its end.
pub fn check_continue(place: &Place, server: &ModelServer) -> Checked {
    let mut command = place.run(server.port);
    command.args(["--continue", "go on"]);
    let output = succeed("run --continue", command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let last: Value =
        text.lines().next_back().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    require(last["stopReason"] == "completed" && last["text"] == ANSWER, || format!("it ended with {last}"))
}

/// Whole lines stay where they are; a torn one was copied aside.
pub fn check_bytes_kept(log: &Path, evidence: &Evidence) -> Checked {
    let whole = whole_lines(&evidence.disk);
    require(read(log)?.starts_with(whole), || "lines that were in the log are gone or changed".to_owned())?;
    let (tail, copy) = (&evidence.disk[whole.len()..], log.with_extension("jsonl.torn-1"));
    if tail.is_empty() {
        return require(!copy.exists(), || "a copy of a torn line, but none was torn".to_owned());
    }
    require(read(&copy)? == tail, || "the copy of the torn line differs from it".to_owned())
}

/// The final log is one that a conforming writer writes, and each call has one result.
pub fn check_final_log(log: &Path, marks: &Marks) -> Checked {
    let bytes = read(log)?;
    require(bytes.ends_with(b"\n"), || "the final log ends in a torn line".to_owned())?;
    let events = events_of(&bytes)?;
    let broken: Vec<String> = check_invariants(&events).iter().map(ToString::to_string).collect();
    require(broken.is_empty(), || format!("invariants: {}", broken.join("; ")))?;
    let calls = calls_and_results(&events)?;
    for (id, call) in &calls {
        require(call.results.len() == 1, || format!("{id} has {} results", call.results.len()))?;
        require(call.asked == 1, || format!("{id} was asked for {} times", call.asked))?;
        check_body(id, call, marks)?;
    }
    require(calls.keys().eq(&all_call_ids()), || format!("the calls are {:?}", calls.keys()))
}

#[derive(Default)]
struct Call {
    asked: usize,
    /// The error codes of its results, empty for none.
    results: Vec<String>,
}

fn calls_and_results(events: &[Event]) -> Result<BTreeMap<String, Call>, String> {
    let mut calls: BTreeMap<String, Call> = BTreeMap::new();
    for event in events.iter().filter(|event| !matches!(event.surface_op, Some(SurfaceOp::Replace { .. }))) {
        match event.payload().map_err(|error| error.to_string())? {
            Payload::AssistantMessage(reply) => {
                calls_in(&reply.message.content).for_each(|id| calls.entry(id).or_default().asked += 1);
            }
            Payload::ToolResult(result) => {
                let id = result.message.tool_result().map(|block| block.tool_call_id.to_string());
                let code = result.error.map(|error| error.code).unwrap_or_default();
                calls.entry(id.unwrap_or_default()).or_default().results.push(code);
            }
            _ => {}
        }
    }
    Ok(calls)
}

/// A body runs at most once, not at all when the log says so, and to its end when the log says so.
fn check_body(id: &str, call: &Call, marks: &Marks) -> Checked {
    let (begun, ended) = (marks.begun(id), marks.ended(id));
    let fits = match call.results[0].as_str() {
        "" => (begun, ended) == (1, 1),
        "TOOL_NOT_STARTED" => (begun, ended) == (0, 0),
        "TOOL_OUTCOME_UNKNOWN" => begun <= 1 && ended <= begun,
        _ => false,
    };
    require(fits, || {
        format!("{id} has the result {:?}, began {begun} and ended {ended} times", call.results[0])
    })
}

/// The requests of the run that went on answer each call once, in order.
pub fn check_pairs(server: &ModelServer) -> Checked {
    let mut command = Command::new("python3");
    command.arg(tools_folder().join("pairs.py")).arg(&server.request_log);
    succeed("pairs.py", command).map(drop)
}

fn succeed(what: &str, command: Command) -> Result<Output, String> {
    let output = output(command).map_err(|error| format!("{what}: {error}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last: String = out.lines().next_back().unwrap_or_default().chars().take(400).collect();
    require(output.status.success(), || format!("{what}: {}: {} {last}", output.status, err.trim()))?;
    Ok(output)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(why()) }
}
