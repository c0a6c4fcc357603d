//! What the scripted model does: twenty steps of bash calls that leave marks, then an answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Steps with calls before the answer.
pub const STEPS: u64 = 20;

/// What a long reply has more than others.
const LONG_REPLY_BYTES: usize = 1_500_000;

/// The last answer.
pub const ANSWER: &str = "All twenty steps are done.";

/// The id of a call: the step, counted from 1, and its place in the step.
pub fn call_id(step: u64, place: u64) -> String {
    format!("call-{step:02}-{place}")
}

/// How many calls a step has.
fn calls_of(step: u64) -> u64 {
    if step.is_multiple_of(6) { 2 } else { 1 }
}

/// The ids of all calls of the script, in order.
pub fn all_call_ids() -> Vec<String> {
    (1..=STEPS).flat_map(|step| (0..calls_of(step)).map(move |place| call_id(step, place))).collect()
}

/// Where the bodies of calls leave marks, one line each time they get there.
#[derive(Clone, Debug)]
pub struct Marks(PathBuf);

impl Marks {
    /// Marks in this folder.
    pub fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn path(&self, id: &str, point: &str) -> PathBuf {
        self.0.join(format!("{id}.{point}"))
    }

    /// How often the body of a call has begun.
    pub fn begun(&self, id: &str) -> usize {
        self.count(id, "begun")
    }

    /// How often the body of a call has come to its end.
    pub fn ended(&self, id: &str) -> usize {
        self.count(id, "ended")
    }

    fn count(&self, id: &str, point: &str) -> usize {
        std::fs::read_to_string(self.path(id, point)).map_or(0, |text| text.lines().count())
    }

    /// Begun and ended of every call that has left a mark.
    pub fn all(&self) -> BTreeMap<String, (usize, usize)> {
        let counts = all_call_ids().into_iter().map(|id| {
            let counts = (self.begun(&id), self.ended(&id));
            (id, counts)
        });
        counts.filter(|(_, counts)| *counts != (0, 0)).collect()
    }
}

/// What differs between trials.
#[derive(Clone, Copy, Debug, Default)]
pub struct Variant {
    /// A request, counted from 1, that is refused once.
    pub failing_request: Option<u64>,
    /// A step whose reply is so long that its write takes a while.
    pub long_reply: Option<u64>,
}

/// The whole script.
pub fn script(marks: &Marks, variant: Variant) -> Value {
    let mut turns: Vec<Value> = (1..=STEPS).map(|step| turn(marks, step, variant)).collect();
    turns.push(json!({"text": ANSWER}));
    let mut script = json!({"turns": turns});
    if let Some(number) = variant.failing_request {
        let failure = json!({"status": 503, "message": "overloaded, by the script"});
        script["fail"] = json!({number.to_string(): failure});
    }
    script
}

fn turn(marks: &Marks, step: u64, variant: Variant) -> Value {
    let calls: Vec<Value> = (0..calls_of(step))
        .map(|place| {
            let id = call_id(step, place);
            let arguments =
                json!({"command": command(marks, step, &id), "description": "Leave marks of this step"});
            json!({"id": id, "name": "bash", "arguments": arguments})
        })
        .collect();
    let length = if variant.long_reply == Some(step) { LONG_REPLY_BYTES } else { 0 };
    json!({
        "reasoning": format!("Step {step} of {STEPS} comes now; it leaves a mark before and after a short sleep.{}", "x".repeat(length)),
        "text": format!("Step {step}: I run the next command and look at what it says."),
        "calls": calls,
    })
}

/// A mark, a sleep, a mark; some bodies also leave children in sessions of their own, or print a lot.
fn command(marks: &Marks, step: u64, id: &str) -> String {
    let more = match step {
        9 | 17 => "setsid bash -c 'trap \"\" TERM; sleep 300' & ",
        step if step % 4 == 2 => "(setsid sleep 300 &) ; ",
        step if step % 5 == 3 => "head -c 40000 /dev/zero | tr '\\0' x; ",
        _ => "",
    };
    let (begun, ended) = (marks.path(id, "begun"), marks.path(id, "ended"));
    format!("echo x >> '{}'; {more}sleep 0.03; echo x >> '{}'", begun.display(), ended.display())
}
