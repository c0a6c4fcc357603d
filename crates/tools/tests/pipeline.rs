//! The pipeline and the scheduler at their door: order, policies, durability, cancellation, panics.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use lorimer_protocol::{
    ApprovalAsked, ApprovalDecided, ApprovalOutcome, AssistantMessage, ContentBlock, Draft, Event, Extra,
    Message, Role, SessionHeader, Source, StepStart, TurnStart,
};
use lorimer_session::{Session, check_invariants};
use lorimer_tools::{
    ApprovalAnswer, ApprovalRequest, Approver, CallRequest, Concurrency, Guard, Meta, Next, Outcome,
    Pipeline, PipelineBuilder, Policy, Produced, Registry, RegistryError, RepeatReminder, Restriction,
    Review, Scheduler, StepPlace, Tool, ToolContext, ToolError, Verdict,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

/// A tool that does what its arguments say and remembers what ran.
#[derive(Clone)]
struct Probe {
    name: &'static str,
    concurrency: Concurrency,
    trace: Arc<Mutex<Vec<String>>>,
    barrier: Arc<Barrier>,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct ProbeArgs {
    /// What to do.
    act: String,
    /// How often.
    #[serde(default)]
    #[expect(dead_code, reason = "only its schema is of interest")]
    times: Option<f64>,
    /// A list.
    #[serde(default)]
    #[expect(dead_code, reason = "only its schema is of interest")]
    list: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct ProbeOutput {
    said: String,
}

impl Probe {
    fn new(name: &'static str, concurrency: Concurrency) -> Self {
        Self {
            name,
            concurrency,
            trace: Arc::default(),
            barrier: Arc::new(Barrier::new(2)),
            running: Arc::default(),
            most: Arc::default(),
            timeout_ms: None,
        }
    }

    fn note(&self, text: String) {
        self.trace.lock().expect("unpoisoned").push(text);
    }
}

impl Tool for Probe {
    type Args = ProbeArgs;
    type Output = ProbeOutput;

    fn name(&self) -> &str {
        self.name
    }
    fn description(&self) -> String {
        "Does what it is told.".to_owned()
    }
    fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }
    fn concurrency(&self, _args: &ProbeArgs) -> Concurrency {
        self.concurrency
    }
    async fn execute(&self, args: &ProbeArgs, context: &ToolContext) -> Result<ProbeOutput, ToolError> {
        self.note(format!("{} {}", self.name, args.act));
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let result = match args.act.as_str() {
            "meet" => {
                self.barrier.wait().await;
                Ok(())
            }
            "panic" => panic!("probe panicked"),
            "fail" => Err(ToolError::typed("ProbeError", "PROBE", "probe failed")),
            "wait" => {
                context.cancel.cancelled().await;
                Ok(())
            }
            "conclude" => {
                context.conclude_turn();
                Ok(())
            }
            "defer" => {
                context.defer_context(Message::user_text("deferred", "look", Source::user()));
                Ok(())
            }
            _ => Ok(()),
        };
        self.running.fetch_sub(1, Ordering::SeqCst);
        result.map(|()| ProbeOutput { said: args.act.clone() })
    }
    fn render(&self, _args: &ProbeArgs, output: &ProbeOutput) -> Vec<ContentBlock> {
        assert_ne!(output.said, "render-panic", "render panicked");
        vec![ContentBlock::text(format!("did {}", output.said))]
    }
    fn presentation_meta(&self, _args: &ProbeArgs, output: &ProbeOutput) -> Option<Meta> {
        Some(json!({"said": output.said}).into())
    }
}

fn session() -> Arc<Session> {
    let session = Session::in_memory(SessionHeader::new("s".into(), 0, None));
    session.append(Draft::new(&TurnStart { turn: 1 })).expect("fits");
    session.append(Draft::new(&StepStart { turn: 1, step: 1 })).expect("fits");
    Arc::new(session)
}

fn builder(tools: &[Probe]) -> PipelineBuilder {
    let mut registry = Registry::default();
    for tool in tools {
        registry.register(tool.clone()).expect("registered");
    }
    PipelineBuilder::new(registry, PathBuf::from("/w"))
}

fn request(name: &str, id: &str, arguments: &str) -> CallRequest {
    CallRequest { call_id: id.into(), name: name.to_owned(), arguments: arguments.to_owned() }
}

async fn call(pipeline: &Pipeline, name: &str, arguments: &str) -> Outcome {
    pipeline.call(&request(name, "c", arguments), session(), CancellationToken::new()).await
}

fn text(outcome: &Outcome) -> String {
    outcome.plain_text().expect("plain text")
}

fn code(outcome: &Outcome) -> Option<&str> {
    outcome.error.as_ref().map(|error| error.code.as_str())
}

#[tokio::test]
async fn a_call_gives_content_value_and_meta() {
    let pipeline = builder(&[Probe::new("probe", Concurrency::Exclusive)]).build();
    let outcome = call(&pipeline, "probe", r#"{"act":"x","unknown":1}"#).await;
    assert_eq!(text(&outcome), "did x");
    assert_eq!(
        (outcome.value, outcome.meta),
        (Some(json!({"said": "x"})), Some(json!({"said": "x"}).into()))
    );
}

#[tokio::test]
async fn argument_errors_name_the_field_what_was_wanted_and_what_came() {
    let probe = Probe::new("probe", Concurrency::Exclusive);
    let pipeline = builder(std::slice::from_ref(&probe)).build();
    for (arguments, message) in [
        ("", "missing required property \"act\""),
        ("{\"act\":3}", "\"act\" must be a string (got the number 3)"),
        ("{\"act\":null}", "\"act\" must be a string (got null)"),
        ("{\"act\":\"x\",\"times\":\"ten\"}", "\"times\" must be a number (got the string \"ten\")"),
        ("{\"act\":\"x\",\"list\":[1]}", "\"list[0]\" must be a string (got the number 1)"),
        (
            "{\"times\":[],\"list\":{}}",
            "missing required property \"act\"; \"times\" must be a number (got an array of 0); \"list\" must be an array (got an object)",
        ),
        ("not json", "\"arguments\" must be an object (got the string \"not json\")"),
    ] {
        let outcome = call(&pipeline, "probe", arguments).await;
        assert_eq!(text(&outcome), format!("Error: invalid arguments: {message}"), "{arguments}");
        assert_eq!(code(&outcome), Some("INVALID_ARGS"));
    }
    assert!(probe.trace.lock().expect("unpoisoned").is_empty(), "the body never ran");
}

/// Shows a policy what it sees.
struct Spy(Arc<Mutex<Vec<Value>>>);

impl Policy for Spy {
    fn before<'a>(&'a self, call: &'a ToolContext) -> BoxFuture<'a, Verdict> {
        self.0.lock().expect("unpoisoned").push(call.arguments.clone());
        Box::pin(async { Verdict::Allow })
    }
}

#[tokio::test]
async fn values_with_one_reading_are_converted_before_policies_see_them() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let pipeline =
        builder(&[Probe::new("probe", Concurrency::Exclusive)]).policy(Arc::new(Spy(seen.clone()))).build();
    for arguments in [
        r#"{"act":"x","times":"10","list":"[\"a\"]"}"#,
        r#""{\"act\":\"x\",\"times\":10,\"list\":[\"a\"]}""#,
        r#"{"act":"10","times":null}"#,
    ] {
        assert!(!call(&pipeline, "probe", arguments).await.is_error, "{arguments}");
    }
    let seen = seen.lock().expect("unpoisoned").clone();
    assert_eq!(seen[0], json!({"act": "x", "times": 10, "list": ["a"]}));
    assert_eq!(seen[1], seen[0]);
    assert_eq!(seen[2], json!({"act": "10"}), "a string stays a string");
}

#[tokio::test]
async fn an_unknown_tool_and_a_panic_are_that_calls_error() {
    let pipeline = builder(&[Probe::new("probe", Concurrency::Exclusive)]).build();
    let outcome = call(&pipeline, "prob", "{}").await;
    assert_eq!(
        (text(&outcome).as_str(), code(&outcome)),
        ("Error: unknown tool \"prob\"", Some("UNKNOWN_TOOL"))
    );
    let outcome = call(&pipeline, "probe", r#"{"act":"panic"}"#).await;
    assert_eq!(text(&outcome), "Error: tool \"probe\" failed unexpectedly: probe panicked");
    let outcome = call(&pipeline, "probe", r#"{"act":"render-panic"}"#).await;
    assert!(
        text(&outcome).starts_with("Error: tool \"probe\" returned invalid output: output.render failed:")
    );
    let outcome = call(&pipeline, "probe", r#"{"act":"fail"}"#).await;
    assert_eq!((text(&outcome).as_str(), code(&outcome)), ("Error: probe failed", Some("PROBE")));
}

#[tokio::test]
async fn a_time_limit_ends_one_call_with_its_own_error() {
    let probe = Probe { timeout_ms: Some(20), ..Probe::new("probe", Concurrency::Exclusive) };
    let outcome = call(&builder(&[probe]).build(), "probe", r#"{"act":"wait"}"#).await;
    assert_eq!(text(&outcome), "Error: tool call timed out after 20ms");
    assert_eq!(code(&outcome), Some("TOOL_TIMEOUT"));
}

/// A policy made of closures.
#[derive(Default)]
struct Scripted {
    verdict: Option<Verdict>,
    review: Option<Review>,
    around: Option<Arc<Mutex<Vec<String>>>>,
}

impl Policy for Scripted {
    fn before<'a>(&'a self, _call: &'a ToolContext) -> BoxFuture<'a, Verdict> {
        Box::pin(async { self.verdict.clone().unwrap_or(Verdict::Allow) })
    }
    fn around<'a>(
        &'a self,
        _call: &'a ToolContext,
        next: Next<'a>,
    ) -> BoxFuture<'a, Result<Produced, ToolError>> {
        Box::pin(async move {
            let Some(trace) = &self.around else {
                return next.run().await;
            };
            trace.lock().expect("unpoisoned").push("in".to_owned());
            let result = next.run().await;
            trace.lock().expect("unpoisoned").push("out".to_owned());
            result
        })
    }
    fn after<'a>(&'a self, _call: &'a ToolContext, _outcome: &'a Outcome) -> BoxFuture<'a, Review> {
        Box::pin(async { self.review.clone().unwrap_or_else(Review::accept) })
    }
}

struct Answer(ApprovalOutcome);

impl Approver for Answer {
    fn ask(&self, _request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async { self.0.into() })
    }
}

struct Refuse;

impl Guard for Refuse {
    fn check(&self, _call: &ToolContext) -> Option<String> {
        Some("guarded".to_owned())
    }
}

fn deciding(verdict: Verdict) -> Arc<Scripted> {
    Arc::new(Scripted { verdict: Some(verdict), ..Scripted::default() })
}

#[tokio::test]
async fn denials_questions_and_guards_in_their_order() {
    let probe = Probe::new("probe", Concurrency::Exclusive);
    let x = r#"{"act":"x"}"#;
    let ask = || deciding(Verdict::Ask { reason: None, refusals: None });
    let with = |build: &dyn Fn(PipelineBuilder) -> PipelineBuilder| {
        build(builder(std::slice::from_ref(&probe))).build()
    };
    let cases = [
        (with(&|b| b.policy(ask()).policy(deciding(Verdict::Deny { reason: "no".into() }))), "no"),
        (with(&|b| b.policy(ask())), "tool \"probe\" requires approval (not yet supported)"),
        (
            with(&|b| b.policy(ask()).approver(Arc::new(Answer(ApprovalOutcome::Rejected)))),
            "the user rejected tool \"probe\"",
        ),
        (
            with(&|b| b.policy(ask()).approver(Arc::new(Answer(ApprovalOutcome::Cancelled)))),
            "approval for tool \"probe\" was cancelled",
        ),
        (
            with(&|b| b.policy(ask()).approver(Arc::new(Answer(ApprovalOutcome::Unavailable)))),
            "tool \"probe\" requires approval, but no approval channel is available",
        ),
        (
            with(&|b| {
                b.policy(ask())
                    .approver(Arc::new(Answer(ApprovalOutcome::AllowedOnce)))
                    .guard(Arc::new(Refuse))
            }),
            "guarded",
        ),
    ];
    for (pipeline, reason) in cases {
        let outcome = call(&pipeline, "probe", x).await;
        assert_eq!((text(&outcome), code(&outcome)), (format!("Error: {reason}"), None));
    }
    assert!(probe.trace.lock().expect("unpoisoned").is_empty(), "the body never ran");
    let allowed = with(&|b| b.policy(ask()).approver(Arc::new(Answer(ApprovalOutcome::AllowedOnce))));
    assert!(!call(&allowed, "probe", x).await.is_error);
}

#[tokio::test]
async fn a_question_and_its_answer_are_logged_and_a_refusal_can_say_why() {
    struct Refusing;
    impl Approver for Refusing {
        fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
            assert_eq!((request.tool_name.as_str(), request.reason.as_deref()), ("probe", Some("it is new")));
            let message = Some("use the other one".to_owned());
            Box::pin(async { ApprovalAnswer { outcome: ApprovalOutcome::Rejected, message } })
        }
    }
    let probe = Probe::new("probe", Concurrency::Exclusive);
    let asking = deciding(Verdict::Ask { reason: Some("it is new".to_owned()), refusals: None });
    let pipeline = builder(std::slice::from_ref(&probe)).policy(asking).approver(Arc::new(Refusing)).build();
    let session = session();
    let mut events = session.subscribe();
    let outcome =
        pipeline.call(&request("probe", "c1", r#"{"act":"x"}"#), session, CancellationToken::new()).await;
    assert_eq!(text(&outcome), "Error: the user rejected tool \"probe\": use the other one");
    let mut logged = std::iter::from_fn(|| events.try_recv().ok());
    let asked: ApprovalAsked = logged.next().expect("asked").data_as().expect("typed").expect("asked");
    assert_eq!(asked.call_id.expect("a call").as_str(), "c1");
    let decided: ApprovalDecided =
        logged.next().expect("decided").data_as().expect("typed").expect("decided");
    assert_eq!((decided.id, decided.outcome), (asked.id, ApprovalOutcome::Rejected));
}

#[tokio::test]
async fn reviews_replace_block_and_add() {
    let probe = Probe::new("probe", Concurrency::Exclusive);
    let reviewed = |review: Review| {
        builder(std::slice::from_ref(&probe))
            .policy(Arc::new(Scripted { review: Some(review), ..Scripted::default() }))
            .build()
    };
    let note = || Message::user_text("n", "note", Source::user());
    let outcome =
        call(&reviewed(Review::ReplaceContent(vec![ContentBlock::text("other")])), "probe", r#"{"act":"x"}"#)
            .await;
    assert_eq!((text(&outcome).as_str(), outcome.is_error), ("other", false));
    let outcome =
        call(&reviewed(Review::ReplaceValue(json!({"said": "y"}))), "probe", r#"{"act":"x"}"#).await;
    assert_eq!((text(&outcome).as_str(), outcome.meta), ("did y", Some(json!({"said": "y"}).into())));
    let outcome = call(&reviewed(Review::ReplaceValue(json!({"odd": 1}))), "probe", r#"{"act":"x"}"#).await;
    assert_eq!(code(&outcome), Some("INVALID_TOOL_OUTPUT"));
    let outcome =
        call(&reviewed(Review::ReplaceValue(json!({"said": "y"}))), "probe", r#"{"act":"fail"}"#).await;
    assert_eq!(text(&outcome), "Error: tools/post-execute cannot replace the value of a failed result");
    let block = Review::Block { feedback: vec![ContentBlock::text("stop")], contexts: vec![note()] };
    let outcome = call(&reviewed(block), "probe", r#"{"act":"defer"}"#).await;
    assert_eq!((text(&outcome).as_str(), outcome.is_error, outcome.value.is_none()), ("stop", true, true));
    assert_eq!(outcome.contexts.len(), 1, "what the body deferred is dropped");
    let accept = Review::Accept { contexts: vec![note()], first: false };
    let outcome = call(&reviewed(accept), "probe", r#"{"act":"defer"}"#).await;
    let ids: Vec<&str> = outcome.contexts.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["deferred", "n"]);
}

#[tokio::test]
async fn the_first_policy_is_outermost() {
    let trace: Arc<Mutex<Vec<String>>> = Arc::default();
    let layer = || Arc::new(Scripted { around: Some(trace.clone()), ..Scripted::default() });
    let probe = Probe { trace: trace.clone(), ..Probe::new("probe", Concurrency::Exclusive) };
    let pipeline = builder(&[probe]).policy(layer()).policy(layer()).build();
    call(&pipeline, "probe", r#"{"act":"x"}"#).await;
    assert_eq!(*trace.lock().expect("unpoisoned"), ["in", "in", "probe x", "out", "out"]);
}

#[test]
fn scopes_shadow_restrict_and_refuse_duplicates() {
    let mut registry = Registry::default();
    let probe = || Probe::new("probe", Concurrency::Exclusive);
    registry.register(probe()).expect("registered");
    registry.register(Probe::new("other", Concurrency::Exclusive)).expect("registered");
    assert_eq!(registry.register(probe()), Err(RegistryError::Duplicate("probe".into())));
    assert_eq!(
        registry.register(Probe::new("run_code", Concurrency::Exclusive)),
        Err(RegistryError::Reserved)
    );
    registry.register_for("a", probe()).expect("shadows");
    assert_eq!(registry.register_for("a", probe()), Err(RegistryError::DuplicateInScope("probe".into())));
    registry.restrict("a", Restriction { allow: Some(vec!["probe".into()]), deny: vec![] });
    let names = |agent: &str| -> Vec<String> {
        registry.visible(agent).iter().map(|tool| tool.name().to_owned()).collect()
    };
    assert_eq!(
        (names("a"), names("b")),
        (vec!["probe".to_owned()], vec!["probe".to_owned(), "other".to_owned()])
    );
}

/// A session whose open step has a reply that makes these calls.
fn session_with_calls(calls: &[CallRequest]) -> Arc<Session> {
    let session = session();
    let content = calls
        .iter()
        .map(|call| ContentBlock::tool_call(call.call_id.clone(), &call.name, &call.arguments))
        .collect();
    let source =
        Source::Model { provider: "p".into(), model: "m".into(), replay_state: None, extra: Extra::new() };
    let message = Message { id: "a".into(), role: Role::Assistant, content, source, extra: Extra::new() };
    let reply = AssistantMessage { turn: 1, step: 1, message, usage: None, interrupted: None };
    session.append(Draft::new(&reply).citing(vec![]).on_surface()).expect("fits");
    session
}

async fn run(
    pipeline: &Pipeline,
    calls: Vec<CallRequest>,
    cancel: CancellationToken,
    width: usize,
) -> (Vec<Event>, bool) {
    let session = session_with_calls(&calls);
    let mut seen = session.subscribe();
    let place = StepPlace { turn: 1, step: 1 };
    let scheduler = Scheduler { pipeline, session: &session, place, max_parallel_tool_calls: width, cancel };
    let end = scheduler.run(calls).await.expect("logged");
    let mut events = Vec::new();
    while let Ok(event) = seen.try_recv() {
        events.push(event.as_ref().clone());
    }
    (events, end.concludes_turn)
}

/// `call c1`, `result c1`, … in log order.
fn order(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| {
            let data: Value = serde_json::from_str(event.data.get()).expect("JSON");
            match event.kind.as_str() {
                "tool/call" => format!("call {}", data["callId"].as_str().expect("an id")),
                "tool/result" => {
                    format!("result {}", data["message"]["source"]["callId"].as_str().expect("an id"))
                }
                other => other.to_owned(),
            }
        })
        .collect()
}

#[tokio::test]
async fn parallel_calls_overlap_and_commit_in_model_order() {
    let probe = Probe::new("read", Concurrency::Parallel);
    let pipeline = builder(std::slice::from_ref(&probe)).build();
    let meet = r#"{"act":"meet"}"#;
    let calls = vec![request("read", "c1", meet), request("read", "c2", meet)];
    // The bodies wait for each other, so they only end when both run.
    let (events, _) = run(&pipeline, calls, CancellationToken::new(), 10).await;
    let expected = ["call c1", "call c2", "result c1", "result c2"];
    assert_eq!(order(&events), expected);
}

#[tokio::test]
async fn an_exclusive_call_is_a_barrier_and_the_pool_has_a_width() {
    let read = Probe::new("read", Concurrency::Parallel);
    let write = Probe { trace: read.trace.clone(), ..Probe::new("write", Concurrency::Exclusive) };
    let pipeline = builder(&[read.clone(), write]).build();
    let x = r#"{"act":"x"}"#;
    let names = ["read", "read", "read", "write", "write", "read"];
    let calls = names.iter().enumerate().map(|(at, name)| request(name, &format!("c{at}"), x)).collect();
    let (events, _) = run(&pipeline, calls, CancellationToken::new(), 2).await;
    assert_eq!(
        order(&events),
        [
            "call c0",
            "call c1",
            "result c0",
            "call c2",
            "result c1",
            "result c2",
            "call c3",
            "result c3",
            "call c4",
            "result c4",
            "call c5",
            "result c5"
        ]
    );
    assert!(read.most.load(Ordering::SeqCst) <= 2);
}

#[tokio::test]
async fn a_cancel_drains_what_runs_and_refuses_the_rest() {
    let probe = Probe::new("wait", Concurrency::Exclusive);
    let pipeline = builder(std::slice::from_ref(&probe)).build();
    let cancel = CancellationToken::new();
    let (token, running) = (cancel.clone(), probe.running.clone());
    tokio::spawn(async move {
        while running.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        token.cancel();
    });
    let wait = r#"{"act":"wait"}"#;
    let calls = vec![request("wait", "c1", wait), request("wait", "c2", wait), request("wait", "c3", wait)];
    let (events, _) = run(&pipeline, calls, cancel, 10).await;
    assert_eq!(order(&events), ["call c1", "result c1", "call c2", "result c2", "call c3", "result c3"]);
    let codes: Vec<Value> = events
        .iter()
        .filter(|event| event.kind == "tool/result")
        .map(|event| serde_json::from_str::<Value>(event.data.get()).expect("JSON")["error"]["code"].clone())
        .collect();
    assert_eq!(codes, ["ABORTED", "ABORTED_BEFORE_DISPATCH", "ABORTED_BEFORE_DISPATCH"]);
}

#[tokio::test]
async fn results_cite_their_calls_and_keep_every_invariant() {
    let pipeline = builder(&[Probe::new("probe", Concurrency::Parallel)]).build();
    let calls: Vec<CallRequest> = ["x", "fail", "panic", "conclude"]
        .iter()
        .enumerate()
        .map(|(at, act)| request("probe", &format!("c{at}"), &json!({"act": act}).to_string()))
        .collect();
    let session = session_with_calls(&calls);
    let mut seen = session.subscribe();
    let place = StepPlace { turn: 1, step: 1 };
    let scheduler = Scheduler {
        pipeline: &pipeline,
        session: &session,
        place,
        max_parallel_tool_calls: 10,
        cancel: CancellationToken::new(),
    };
    let end = scheduler.run(calls).await.expect("logged");
    assert!(end.concludes_turn);
    let mut events = Vec::new();
    while let Ok(event) = seen.try_recv() {
        events.push(event.as_ref().clone());
    }
    let calls: Vec<u64> =
        events.iter().filter(|event| event.kind == "tool/call").map(|event| event.seq).collect();
    let cited: Vec<u64> =
        events.iter().filter_map(|event| event.source_event_seqs.as_ref()).flatten().copied().collect();
    assert_eq!(calls, cited);
    let first = [TurnStart { turn: 1 }].map(|start| Draft::new(&start).into_event(0, 0));
    let step = Draft::new(&StepStart { turn: 1, step: 1 }).into_event(1, 0);
    let all: Vec<Event> = first.into_iter().chain([step]).chain(events).collect();
    assert_eq!(check_invariants(&all), []);
}

#[tokio::test]
async fn a_model_that_repeats_itself_is_told() {
    let pipeline = builder(&[Probe::new("probe", Concurrency::Exclusive)])
        .policy(Arc::new(RepeatReminder::default()))
        .build();
    let session = session();
    let mut notices = Vec::new();
    for round in 1..=8 {
        // Key order makes no other call.
        let arguments = if round % 2 == 0 { r#"{"act":"x","times":1}"# } else { r#"{"times":1,"act":"x"}"# };
        let outcome =
            pipeline.call(&request("probe", "c", arguments), session.clone(), CancellationToken::new()).await;
        notices.extend(outcome.contexts.iter().map(|message| (round, message.text())));
    }
    let rounds: Vec<i32> = notices.iter().map(|(round, _)| *round).collect();
    assert_eq!(rounds, [3, 5, 8]);
    assert!(
        notices[1].1.starts_with(
            "Repeated tool call detected:\n- tool: probe\n- consecutive_calls: 5\n- arguments: {"
        )
    );
    let other =
        pipeline.call(&request("probe", "c", r#"{"act":"y"}"#), session, CancellationToken::new()).await;
    assert!(other.contexts.is_empty());
}

#[test]
fn schemas_are_in_the_shared_subset() {
    let mut registry = Registry::default();
    registry.register(Probe::new("probe", Concurrency::Exclusive)).expect("registered");
    let spec = registry.visible("a")[0].spec();
    assert_eq!(
        serde_json::to_string(&spec.parameters).expect("JSON"),
        "{\"type\":\"object\",\"properties\":{\"act\":{\"type\":\"string\",\"description\":\"What to do.\"},\
         \"times\":{\"type\":\"number\",\"description\":\"How often.\"},\
         \"list\":{\"type\":\"array\",\"description\":\"A list.\",\"items\":{\"type\":\"string\"}}},\"required\":[\"act\"]}"
    );
}

/// Asks a person who answers only when told to.
struct Slow(Arc<tokio::sync::Notify>);

impl Approver for Slow {
    fn ask(&self, _request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async {
            self.0.notified().await;
            ApprovalOutcome::AllowedOnce.into()
        })
    }
}

/// Asks about calls that say so.
struct AskAbout(&'static str);

impl Policy for AskAbout {
    fn before<'a>(&'a self, call: &'a ToolContext) -> BoxFuture<'a, Verdict> {
        let asked = call.arguments["act"] == self.0;
        Box::pin(
            async move { if asked { Verdict::Ask { reason: None, refusals: None } } else { Verdict::Allow } },
        )
    }
}

#[tokio::test]
async fn a_question_does_not_hold_up_the_calls_before_it() {
    let (probe, answer) = (Probe::new("read", Concurrency::Parallel), Arc::new(tokio::sync::Notify::new()));
    let pipeline = builder(std::slice::from_ref(&probe))
        .policy(Arc::new(AskAbout("asked")))
        .approver(Arc::new(Slow(answer.clone())))
        .build();
    let trace = probe.trace.clone();
    tokio::spawn(async move {
        // The answer comes only after the first call has run.
        while trace.lock().expect("unpoisoned").is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        answer.notify_one();
    });
    let calls = vec![request("read", "c1", r#"{"act":"x"}"#), request("read", "c2", r#"{"act":"asked"}"#)];
    let (events, _) = run(&pipeline, calls, CancellationToken::new(), 10).await;
    let expected = ["call c1", "call c2", "approval/asked", "approval/decided", "result c1", "result c2"];
    assert_eq!(order(&events), expected);
}
