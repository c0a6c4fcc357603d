//! The loop at its door, with a model made of closures and tools that do as they are told.

mod scripted;

use std::sync::Arc;

use lorimer_agent::{Agent, AgentOptions};
use lorimer_model::RetryPolicy;
use lorimer_protocol::{
    AbortCause, ContentBlock, Event, Failure, FinishReason, SessionHeader, TurnEndReason,
};
use lorimer_session::{Session, check_invariants};
use lorimer_tools::PipelineBuilder;
use scripted::{Model, Reply, registry};
use serde_json::Value;

struct Lab {
    agent: Agent,
    model: Arc<Model>,
    events: tokio::sync::mpsc::UnboundedReceiver<Arc<Event>>,
    seen: Vec<Event>,
    _dir: tempfile::TempDir,
}

fn header() -> SessionHeader {
    SessionHeader::new("s".into(), 0, Some("/w".into()))
}

fn lab_with(replies: Vec<Reply>, change: impl FnOnce(&mut AgentOptions)) -> Lab {
    let dir = tempfile::tempdir().expect("a directory");
    let session = Arc::new(Session::in_memory(header()));
    let events = session.subscribe();
    let model = Arc::new(Model::new(replies));
    let mut options = AgentOptions::new("m", dir.path().to_owned());
    let policy = RetryPolicy { initial_delay_ms: 1, max_delay_ms: 2, ..RetryPolicy::default() };
    options.retry_policy = Some(policy);
    change(&mut options);
    let pipeline = PipelineBuilder::new(registry(), dir.path().to_owned()).build();
    let agent = Agent::new(session, model.clone(), pipeline, options).expect("an agent");
    Lab { agent, model, events, seen: Vec::new(), _dir: dir }
}

fn lab(replies: Vec<Reply>) -> Lab {
    lab_with(replies, |_| {})
}

impl Lab {
    async fn ask(&mut self, text: &str) -> lorimer_agent::TurnReport {
        self.agent.follow_up(text).expect("queued");
        let report = self.agent.run_until_idle().await.expect("a turn");
        self.catch_up();
        report
    }

    fn catch_up(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.seen.push(event.as_ref().clone());
        }
    }

    fn kinds(&self) -> Vec<&str> {
        self.seen.iter().map(|event| event.kind.as_str()).collect()
    }

    fn data_of(&self, kind: &str) -> Vec<Value> {
        let of_kind = self.seen.iter().filter(|event| event.kind == kind);
        of_kind.map(|event| serde_json::from_str(event.data.get()).expect("JSON")).collect()
    }
}

fn assert_requests_come_from_the_log(lab: &Lab) {
    scripted::assert_requests_come_from_the_log(header(), &lab.seen, &lab.model.requests());
}

#[tokio::test]
async fn a_turn_with_tools_writes_events_in_order() {
    let mut lab = lab(vec![
        Reply::calls(&[("c1", "echo", r#"{"text":"a"}"#), ("c2", "echo", r#"{"text":"b"}"#)]),
        Reply::text("done"),
    ]);
    let report = lab.ask("go on then").await;
    assert_eq!((report.reason, report.text.as_str(), report.steps), (TurnEndReason::Completed, "done", 2));
    assert_eq!(check_invariants(&lab.seen), []);
    let kinds: Vec<&str> = lab.kinds().into_iter().filter(|kind| *kind != "assistant/chunk").collect();
    assert_eq!(
        kinds,
        [
            "agent/inbox/spliced",
            "turn/start",
            "agent/inbox/spliced",
            "step/start",
            "user/message",
            "user/message",
            "session/title",
            "request/header",
            "request/context",
            "assistant/message",
            "tool/call",
            "tool/result",
            "tool/call",
            "tool/result",
            "step/end",
            "step/start",
            "assistant/message",
            "step/end",
            "turn/end"
        ]
    );
    assert_requests_come_from_the_log(&lab);
}

#[tokio::test]
async fn a_second_turn_and_a_resumed_agent_keep_the_prefix() {
    let mut lab = lab(vec![Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    lab.ask("first").await;
    lab.ask("second").await;
    let session = lab.agent.session().clone();
    let options = AgentOptions::new("m", lab._dir.path().to_owned());
    let pipeline = PipelineBuilder::new(registry(), lab._dir.path().to_owned()).build();
    lab.agent = Agent::new(session, lab.model.clone(), pipeline, options).expect("an agent");
    lab.ask("third").await;
    let reasons: Vec<Value> =
        lab.data_of("request/header").iter().map(|data| data["reason"].clone()).collect();
    assert_eq!(reasons, ["initial", "resume"]);
    assert_requests_come_from_the_log(&lab);
    assert_eq!(check_invariants(&lab.seen), []);
}

#[tokio::test]
async fn reasoning_goes_back_as_it_was_streamed() {
    let mut lab = lab(vec![
        Reply { reasoning: Some(String::new()), ..Reply::calls(&[("c1", "echo", r#"{"text":"a"}"#)]) },
        Reply {
            reasoning: Some("hm \u{301}".to_owned()),
            ..Reply::calls(&[("c2", "echo", r#"{"text":"a"}"#)])
        },
        Reply::text("done"),
    ]);
    lab.ask("go").await;
    let last = lab.model.requests().pop().expect("a request");
    let reasoning: Vec<ContentBlock> = last
        .messages
        .iter()
        .flat_map(|message| message.content.clone())
        .filter(|block| matches!(block, ContentBlock::Reasoning(_)))
        .collect();
    assert_eq!(reasoning, [ContentBlock::reasoning(""), ContentBlock::reasoning("hm \u{301}")]);
}

#[tokio::test]
async fn a_failed_request_is_repeated_within_its_step() {
    let mut lab = lab(vec![
        Reply { text: "half".to_owned(), ..Reply::failure(Failure::new("STREAM_CLOSED", "closed")) },
        Reply::failure(Failure::new("SERVER", "busy")),
        Reply::text("whole"),
    ]);
    let report = lab.ask("go").await;
    assert_eq!((report.text.as_str(), report.steps), ("whole", 1));
    let retries = lab.data_of("llm/retry");
    assert_eq!(retries.iter().map(|data| data["retry"].clone()).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(lab.data_of("llm/retry-started").len(), 2);
    let message = lab.seen.iter().find(|event| event.kind == "assistant/message").expect("a reply");
    let cited = message.source_event_seqs.clone().expect("cites its chunks");
    let second_start =
        lab.seen.iter().rposition(|event| event.kind == "llm/retry-started").expect("a retry") as u64;
    assert!(cited.iter().all(|seq| *seq > second_start), "failed pieces are not part of the reply");
    assert_eq!(check_invariants(&lab.seen), []);
}

#[tokio::test]
async fn a_failure_that_stands_ends_the_turn_in_the_servers_words() {
    let mut lab = lab(vec![Reply::failure(Failure::new("AUTH", "simulated provider error (HTTP 401)"))]);
    let report = lab.ask("go").await;
    let TurnEndReason::Error { error } = report.reason else { panic!("an error") };
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("AUTH", "simulated provider error (HTTP 401)")
    );
    assert_eq!(check_invariants(&lab.seen), []);
}

#[tokio::test]
async fn a_cancel_keeps_what_was_said_and_throws_away_what_waits() {
    let mut lab =
        lab(vec![Reply { text: "partial".to_owned(), hang: true, ..Reply::default() }, Reply::text("next")]);
    lab.agent.follow_up("start").expect("queued");
    lab.agent.follow_up("never").expect("queued");
    let streaming = lab.model.streaming();
    let (report, ()) = tokio::join!(lab.agent.run_until_idle(), async {
        streaming.notified().await;
        lab.agent.cancel(AbortCause::User);
    });
    let report = report.expect("a turn");
    assert_eq!(report.reason, TurnEndReason::Aborted { reason: AbortCause::User });
    assert_eq!(report.text, "partial");
    lab.catch_up();
    let message = &lab.data_of("assistant/message")[0];
    assert_eq!(
        (&message["interrupted"], &message["message"]["content"][0]["text"]),
        (&true.into(), &"partial".into())
    );
    assert_eq!(lab.data_of("agent/inbox/spliced").last().expect("a splice")["outcome"], "canceled");
    assert_eq!(check_invariants(&lab.seen), []);
    // The agent goes on after a cancel.
    assert_eq!(lab.ask("again").await.text, "next");
    assert_eq!(check_invariants(&lab.seen), []);
    assert_requests_come_from_the_log(&lab);
}

#[tokio::test]
async fn a_cancel_in_a_retry_wait_ends_the_turn() {
    let failing = Reply::failure(Failure {
        provider_retry_after_ms: Some(60_000),
        ..Failure::new("RATE_LIMIT", "slow")
    });
    let mut lab = lab(vec![failing]);
    lab.agent.follow_up("start").expect("queued");
    let mut watch = lab.agent.session().subscribe();
    let (report, ()) = tokio::join!(lab.agent.run_until_idle(), async {
        while watch.recv().await.expect("an event").kind != "llm/retry" {}
        lab.agent.cancel(AbortCause::User);
    });
    assert!(matches!(report.expect("a turn").reason, TurnEndReason::Aborted { .. }));
    lab.catch_up();
    assert_eq!(check_invariants(&lab.seen), []);
}

#[tokio::test]
async fn a_cut_answer_drops_its_calls_and_stays_cut() {
    let mut lab = lab(vec![
        Reply {
            text: "Starting".to_owned(),
            finish: Some(FinishReason::MaxTokens),
            ..Reply::calls(&[("c1", "echo", r#"{"te"#)])
        },
        Reply::text("after"),
    ]);
    let report = lab.ask("go").await;
    assert_eq!((report.reason, report.text.as_str()), (TurnEndReason::MaxTokens, "Starting"));
    assert!(lab.data_of("tool/call").is_empty());
    assert_eq!(lab.ask("more").await.text, "after");
    assert_requests_come_from_the_log(&lab);
}

#[tokio::test]
async fn the_step_limit_ends_a_turn_by_name() {
    let call = || Reply::calls(&[("c", "echo", r#"{"text":"a"}"#)]);
    let mut lab = lab_with(vec![call(), call(), call()], |options| options.max_steps = Some(2));
    let report = lab.ask("go").await;
    let TurnEndReason::Error { error } = report.reason else { panic!("an error") };
    assert_eq!((error.code.as_str(), report.steps), ("STEP_LIMIT", 2));
    assert_eq!(check_invariants(&lab.seen), []);
}

#[tokio::test]
async fn steering_enters_at_the_next_step() {
    let mut lab = lab(vec![Reply::calls(&[("c", "echo", r#"{"text":"a"}"#)]), Reply::text("done")]);
    lab.agent.steer("and mind the tests").expect("queued");
    lab.ask("go").await;
    let texts: Vec<String> = lab.model.requests()[0].messages.iter().map(|message| message.text()).collect();
    assert_eq!(texts[..2], ["and mind the tests", "go"]);
}

#[tokio::test]
async fn contexts_of_tools_enter_at_the_next_step_and_a_tool_may_end_the_turn() {
    let mut lab = lab(vec![
        Reply::calls(&[("c", "echo", r#"{"text":"defer"}"#)]),
        Reply::calls(&[("c", "echo", r#"{"text":"conclude"}"#)]),
    ]);
    let report = lab.ask("go").await;
    assert_eq!((report.reason, report.steps), (TurnEndReason::Completed, 2));
    assert_eq!(lab.model.requests()[1].messages.last().expect("a message").text(), "deferred");
    assert_eq!(check_invariants(&lab.seen), []);
}

fn big_results(count: usize) -> Vec<Reply> {
    let mut replies: Vec<Reply> =
        (0..count).map(|at| Reply::calls(&[(&format!("c{at}"), "echo", r#"{"text":"big"}"#)])).collect();
    replies.push(Reply::text("done"));
    replies
}

#[tokio::test]
async fn a_full_window_prunes_the_oldest_results_and_says_so_in_the_log() {
    // Each result is 20,000 characters, about 5,000 tokens; the window holds about four.
    let mut lab = lab(big_results(5));
    lab.model.set_window(25_000);
    lab.agent = {
        let session = lab.agent.session().clone();
        let pipeline = PipelineBuilder::new(registry(), lab._dir.path().to_owned()).build();
        Agent::new(session, lab.model.clone(), pipeline, AgentOptions::new("m", lab._dir.path().to_owned()))
            .expect("an agent")
    };
    let report = lab.ask("go").await;
    assert_eq!(report.reason, TurnEndReason::Completed);
    let prunes = lab.data_of("compaction/prune");
    assert!(!prunes.is_empty());
    let replaced: Vec<&Event> = lab
        .seen
        .iter()
        .filter(|event| matches!(event.surface_op, Some(lorimer_protocol::SurfaceOp::Replace { .. })))
        .collect();
    assert_eq!(replaced.len(), prunes.len());
    let data: Value = serde_json::from_str(replaced[0].data.get()).expect("JSON");
    let text = data["message"]["content"][0]["content"][0]["text"].as_str().expect("text");
    assert!(text.len() < 6000 && text.contains("characters of this older result were dropped"));
    assert_eq!(data["meta"]["kept"], true, "what the card is made of stays");
    assert_eq!(check_invariants(&lab.seen), []);
}

#[tokio::test]
async fn an_overflow_prunes_once_and_otherwise_names_the_next_step() {
    let overflow = || Reply::failure(Failure::new("CONTEXT_WINDOW_EXCEEDED", "too long."));
    let mut replies = big_results(2);
    replies.insert(2, overflow());
    let mut lab1 = lab(replies);
    assert_eq!(lab1.ask("go").await.reason, TurnEndReason::Completed);
    assert_eq!(lab1.data_of("compaction/prune").len(), 1, "all but the newest result");
    let mut lab2 = lab(vec![overflow()]);
    let TurnEndReason::Error { error } = lab2.ask("go").await.reason else { panic!("an error") };
    assert!(
        error.message.starts_with("too long. The conversation no longer fits m: start a new session"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn an_empty_answer_to_more_than_the_window_holds_is_an_overflow() {
    let mut lab = lab(vec![Reply::failure(Failure::new("EMPTY_RESPONSE", "nothing came."))]);
    lab.model.set_window(100);
    lab.agent = {
        let session = lab.agent.session().clone();
        let pipeline = PipelineBuilder::new(registry(), lab._dir.path().to_owned()).build();
        Agent::new(session, lab.model.clone(), pipeline, AgentOptions::new("m", lab._dir.path().to_owned()))
            .expect("an agent")
    };
    let TurnEndReason::Error { error } = lab.ask(&"word ".repeat(1000)).await.reason else {
        panic!("an error")
    };
    assert!(error.message.contains("The conversation no longer fits m"), "{}", error.message);
    assert_eq!(lab.model.requests().len(), 1, "asking again would change nothing");
}

#[tokio::test]
async fn instructions_and_context_come_after_the_first_message() {
    let mut lab = lab(vec![Reply::text("ok"), Reply::text("ok")]);
    std::fs::write(lab._dir.path().join("AGENTS.md"), "Be brief.").expect("written");
    lab.ask("go").await;
    lab.ask("again").await;
    let kinds: Vec<String> =
        lab.model.requests()[1].messages.iter().map(|message| message.source.kind().to_owned()).collect();
    assert_eq!(kinds, ["user", "agent-instructions", "plugin", "model", "user"], "nothing is said twice");
}

#[tokio::test]
async fn a_model_that_repeats_an_id_still_gets_one_result_each() {
    let mut lab = lab(vec![
        Reply::calls(&[("same", "echo", r#"{"text":"a"}"#), ("same", "echo", r#"{"text":"b"}"#)]),
        Reply::text("done"),
    ]);
    let report = lab.ask("go").await;
    assert_eq!(report.reason, TurnEndReason::Completed);
    assert_eq!(lab.data_of("tool/result").len(), 2);
}

#[tokio::test]
async fn what_waits_at_the_step_limit_is_not_lost() {
    let call = || Reply::calls(&[("c", "echo", r#"{"text":"defer"}"#)]);
    let mut lab = lab_with(vec![call()], |options| options.max_steps = Some(1));
    lab.ask("go").await;
    let waiting =
        lab.agent.session().with_log(|log| log.inbox().list(lorimer_protocol::InboxTarget::NextStep).len());
    assert_eq!(waiting, 1, "the deferred message waits for the session to go on");
    assert_eq!(check_invariants(&lab.seen), []);
}

#[tokio::test]
async fn messages_queued_at_once_keep_the_log_whole() {
    let lab = lab(vec![]);
    let agent = Arc::new(lab.agent);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let agent = Arc::clone(&agent);
            scope.spawn(move || {
                for at in 0..50 {
                    agent.steer(&format!("{thread}-{at}")).expect("queued");
                }
            });
        }
    });
    let waiting =
        agent.session().with_log(|log| log.inbox().list(lorimer_protocol::InboxTarget::NextStep).len());
    assert_eq!(waiting, 200);
}
