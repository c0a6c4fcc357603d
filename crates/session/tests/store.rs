//! The store on a real file system: durability, locks, torn tails, damage.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_protocol::{
    AssistantChunk, Draft, Event, Message, SessionId, SessionTitle, Source, StepStart, StreamChunk,
    TitleSource, TurnEnd, TurnEndReason, TurnStart,
};
use lorimer_session::{
    Compression, OpenError, Problem, Session, Store, StoreError, StoreOptions, check_invariants,
};

struct Home {
    _dir: tempfile::TempDir,
    store: Store,
    cwd: PathBuf,
}

fn home(compression: Compression) -> Home {
    let dir = tempfile::tempdir().expect("a directory");
    let cwd = dir.path().join("work");
    let options = StoreOptions { compression, ..StoreOptions::default() };
    Home { store: Store::new(&dir.path().join("home"), options), cwd, _dir: dir }
}

/// Runs each test on plain and on compressed logs.
macro_rules! in_both_encodings {
    ($($name:ident),* $(,)?) => {
        mod plain {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::home(lorimer_session::Compression::None)).await;
            })*
        }
        mod compressed {
            $(#[tokio::test]
            async fn $name() {
                super::$name(super::home(lorimer_session::Compression::Zstd)).await;
            })*
        }
    };
}

in_both_encodings! {
    nothing_is_written_before_the_first_event_and_then_header_and_batch_together,
    a_resumed_session_goes_on_where_it_was_and_says_so,
    what_a_dying_process_had_not_published_is_removed_at_the_next_opening,
    a_second_writer_is_told_who_holds_it_and_may_read,
    a_torn_last_line_is_copied_aside_and_cut_off,
    damage_before_the_tail_opens_read_only_and_says_why,
    what_a_newer_writer_wrote_is_never_cut_off,
    another_format_and_a_broken_header_are_refused_by_name,
    runs_of_deltas_are_packed_and_come_back_equal,
    a_list_shows_titles_newest_first_and_finds_by_prefix,
    a_batch_that_cannot_be_written_is_reported_kept_and_written_later,
    events_reach_the_disk_without_a_flush,
}

fn user(text: &str) -> Draft {
    Draft::new(&Message::user_text(format!("m-{text}"), text, Source::user())).on_surface()
}

/// One whole turn that says `text`.
async fn turn(session: &Session, turn: u64, text: &str) {
    session.append(Draft::new(&TurnStart { turn })).expect("fits");
    session.append(user(text)).expect("fits");
    session.append(Draft::new(&TurnEnd { turn, reason: TurnEndReason::Completed })).expect("fits");
    session.flush().await.expect("saved");
}

fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("readable");
    if path.extension().is_some_and(|extension| extension == "zstd") {
        return String::from_utf8(zstd::decode_all(bytes.as_slice()).expect("frames")).expect("text");
    }
    String::from_utf8(bytes).expect("text")
}

fn lines(path: &Path) -> Vec<String> {
    text(path).lines().map(str::to_owned).collect()
}

/// Writes a log's text in the encoding that its name says.
fn write_text(path: &Path, text: &str) {
    let compressed = path.extension().is_some_and(|extension| extension == "zstd") && !text.is_empty();
    let bytes = if compressed {
        zstd::encode_all(text.as_bytes(), 3).expect("a frame")
    } else {
        text.as_bytes().to_vec()
    };
    std::fs::write(path, bytes).expect("written");
}

async fn stored_turn(home: &Home) -> (SessionId, PathBuf) {
    let session = home.store.create(&home.cwd).expect("created");
    turn(&session, 1, "one").await;
    let id = session.id().clone();
    drop(session);
    let path = home.store.path(&id).expect("there");
    (id, path)
}

async fn nothing_is_written_before_the_first_event_and_then_header_and_batch_together(home: Home) {
    let session = home.store.create(&home.cwd).expect("created");
    assert!(!home.store.root().exists());
    turn(&session, 1, "one").await;
    let path = home.store.path(session.id()).expect("there");
    assert_eq!(lines(&path).len(), 4);
    assert!(lines(&path)[0].starts_with(r#"{"type":"session","version":0,"id":""#));
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    let names: Vec<_> = std::fs::read_dir(path.parent().expect("a folder")).expect("readable").collect();
    assert_eq!(names.len(), 2, "the log and its lock, no temporary file");
}

async fn a_resumed_session_goes_on_where_it_was_and_says_so(home: Home) {
    let (id, path) = stored_turn(&home).await;
    let before = lines(&path);
    let opened = home.store.open(&id).expect("opens");
    assert!(!opened.closed_turn && opened.torn_copy.is_none());
    turn(&opened.session, 2, "two").await;
    let after = lines(&path);
    assert_eq!(after[..before.len()], before[..]);
    assert!(after[before.len()].contains("session/end-seed"));
    assert_eq!(opened.session.with_log(|log| log.messages().count()), 2);
    drop(opened);
    let events: Vec<Event> =
        home.store.events(&id).expect("opens").map(|event| event.expect("whole")).collect();
    assert_eq!(check_invariants(&events), []);
}

async fn what_a_dying_process_had_not_published_is_removed_at_the_next_opening(home: Home) {
    let (id, path) = stored_turn(&home).await;
    let litter = path.with_extension("jsonl.0123.tmp");
    std::fs::write(&litter, "half").expect("written");
    home.store.open(&id).expect("opens");
    assert!(!litter.exists() && path.exists());
}

async fn a_second_writer_is_told_who_holds_it_and_may_read(home: Home) {
    let session = home.store.create(&home.cwd).expect("created");
    turn(&session, 1, "one").await;
    let error = home.store.open(session.id()).err().expect("held").to_string();
    assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
    assert!(matches!(home.store.delete(session.id()), Err(StoreError::Held { .. })));
    assert_eq!(home.store.inspect(session.id()).expect("readable").log.messages().count(), 1);
    let id = session.id().clone();
    drop(session);
    home.store.open(&id).expect("free again");
}

async fn a_torn_last_line_is_copied_aside_and_cut_off(home: Home) {
    let (id, path) = stored_turn(&home).await;
    let whole = std::fs::read(&path).expect("readable");
    for (round, torn) in
        [&br#"{"type":"turn/sta"#[..], b"\0\0\0\0\n", br#"{"type":"turn/start","seq":9}"#].iter().enumerate()
    {
        let before = std::fs::read(&path).expect("readable");
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("opens")
            .write_all(torn)
            .expect("written");
        let inspected = home.store.inspect(&id).expect("readable");
        assert!(inspected.problem.is_none());
        let opened = home.store.open(&id).expect("opens");
        let copy = opened.torn_copy.expect("copied aside");
        assert_eq!(copy, PathBuf::from(format!("{}.torn-{}", path.display(), round + 1)));
        assert_eq!(std::fs::read(copy).expect("readable"), *torn);
        drop(opened.session);
        assert!(std::fs::read(&path).expect("readable").starts_with(&before));
    }
    assert!(std::fs::read(&path).expect("readable").starts_with(&whole));
}

#[tokio::test]
async fn every_cut_of_a_log_opens_loses_no_whole_line_and_is_closed() {
    let home = home(Compression::None);
    let session = home.store.create(&home.cwd).expect("created");
    turn(&session, 1, "one").await;
    session.append(Draft::new(&TurnStart { turn: 2 })).expect("fits");
    session.append(Draft::new(&StepStart { turn: 2, step: 1 })).expect("fits");
    session.append(user("héllo")).expect("fits");
    session.flush().await.expect("saved");
    let id = session.id().clone();
    drop(session);
    let path = home.store.path(&id).expect("there");
    let whole = std::fs::read(&path).expect("readable");
    let header = whole.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
    for length in header..=whole.len() {
        std::fs::write(&path, &whole[..length]).expect("written");
        let opened = home.store.open(&id).unwrap_or_else(|error| panic!("cut at {length}: {error}"));
        opened.session.flush().await.expect("saved");
        drop(opened);
        let now = std::fs::read(&path).expect("readable");
        let kept = whole[..length].iter().rposition(|byte| *byte == b'\n').expect("a line") + 1;
        assert!(now.starts_with(&whole[..kept]), "cut at {length}");
        let events: Vec<Event> =
            home.store.events(&id).expect("opens").map(|event| event.expect("whole")).collect();
        assert_eq!(check_invariants(&events), [], "cut at {length}");
    }
}

async fn damage_before_the_tail_opens_read_only_and_says_why(home: Home) {
    let (id, path) = stored_turn(&home).await;
    let mut damaged = lines(&path);
    damaged[2].truncate(10);
    write_text(&path, &(damaged.join("\n") + "\n"));
    let bytes = std::fs::read(&path).expect("readable");
    let error = home.store.open(&id).err().expect("refused");
    assert!(
        matches!(&error, OpenError::ReadOnly { problem: Problem::Damaged { line: 2, .. }, .. }),
        "{error}"
    );
    assert!(error.to_string().contains(
        "can be read but not continued: corrupt session log: unparsable committed event at line 2"
    ));
    let inspected = home.store.inspect(&id).expect("readable");
    assert!(inspected.problem.is_some() && inspected.log.next_seq() == 1 + 1, "the good part and a closer");
    assert_eq!(std::fs::read(&path).expect("readable"), bytes, "nothing was changed");
}

async fn what_a_newer_writer_wrote_is_never_cut_off(home: Home) {
    let (id, path) = stored_turn(&home).await;
    let good = text(&path);
    for line in [
        r#"{"type":"later/thing","seq":3,"time":0,"data":{}}"#,
        r#"{"type":"turn/start","seq":3,"time":0,"data":{"turn":2},"newKey":1}"#,
        r#"{"type":"turn/start","seq":7,"time":0,"data":{"turn":2}}"#,
    ] {
        write_text(&path, &format!("{good}{line}\n"));
        let error = home.store.open(&id).err().expect("refused");
        assert!(matches!(error, OpenError::ReadOnly { .. }), "{line}: {error}");
        assert!(text(&path).ends_with(&format!("{line}\n")));
    }
    let skippable = r#"{"type":"later/thing","seq":3,"time":0,"data":{},"ignorable":true}"#;
    write_text(&path, &format!("{good}{skippable}\n"));
    home.store.open(&id).expect("may be skipped");
}

async fn another_format_and_a_broken_header_are_refused_by_name(home: Home) {
    let (id, path) = stored_turn(&home).await;
    let good = text(&path);
    write_text(&path, &good.replacen("\"version\":0", "\"version\":4", 1));
    let error = home.store.open(&id).err().expect("refused").to_string();
    assert!(error.contains("uses log format v4, but this harness reads only v0"), "{error}");
    write_text(&path, "not a header\n");
    let error = home.store.inspect(&id).err().expect("refused").to_string();
    assert!(error.contains("header line is not valid JSON"), "{error}");
    std::fs::write(&path, "").expect("written");
    let error = home.store.inspect(&id).err().expect("refused").to_string();
    assert!(error.contains("empty or header-less session log"), "{error}");
}

async fn runs_of_deltas_are_packed_and_come_back_equal(home: Home) {
    let session = home.store.create(&home.cwd).expect("created");
    let mut live = session.subscribe();
    session.append(Draft::new(&TurnStart { turn: 1 })).expect("fits");
    session.append(Draft::new(&StepStart { turn: 1, step: 1 })).expect("fits");
    for piece in ["a", "b", "ü", "d"] {
        let chunk = StreamChunk::TextDelta { index: 0, text: piece.to_owned() };
        session.append(Draft::new(&AssistantChunk { turn: 1, step: 1, chunk })).expect("fits");
    }
    session.flush().await.expect("saved");
    let path = home.store.path(session.id()).expect("there");
    assert_eq!(lines(&path).len(), 4, "header, two events, one packed row");
    let stored: Vec<String> = home
        .store
        .events(session.id())
        .expect("opens")
        .map(|event| event.expect("whole").to_json())
        .collect();
    let mut shown = Vec::new();
    while let Ok(event) = live.try_recv() {
        shown.push(event.to_json());
    }
    assert_eq!(stored, shown);
}

async fn a_list_shows_titles_newest_first_and_finds_by_prefix(home: Home) {
    let (first, _) = stored_turn(&home).await;
    std::thread::sleep(std::time::Duration::from_millis(20));
    let session = home.store.create(&home.cwd).expect("created");
    let title = SessionTitle { title: "the second".into(), message_seqs: vec![], source: TitleSource::User };
    session.append(Draft::new(&title)).expect("fits");
    session.flush().await.expect("saved");
    let listed = home.store.list_of(&home.cwd);
    assert_eq!(listed[0].title.as_deref(), Some("the second"));
    assert_eq!((listed.len(), &listed[1].header.id), (2, &first));
    assert_eq!(home.store.list_of(Path::new("/elsewhere")), []);
    assert_eq!(home.store.resolve(&first.as_str()[..13]).expect("found"), first);
    assert!(matches!(home.store.resolve("nothing"), Err(StoreError::NotFound(_))));
    assert!(matches!(home.store.resolve(""), Err(StoreError::NotFound(_) | StoreError::InvalidId(_))));
    home.store.delete(&first).expect("deleted");
    assert!(home.store.path(&first).is_err());
}

async fn a_batch_that_cannot_be_written_is_reported_kept_and_written_later(home: Home) {
    // A file in the way of the project's folder.
    std::fs::create_dir_all(home.store.root().parent().expect("a home")).expect("created");
    std::fs::write(home.store.root(), "in the way").expect("written");
    let session: Arc<Session> = home.store.create(&home.cwd).expect("created");
    session.append(user("one")).expect("fits");
    let error = session.flush().await.expect_err("cannot be saved").to_string();
    assert!(error.starts_with("cannot save the session to "), "{error}");
    std::fs::remove_file(home.store.root()).expect("removed");
    session.append(user("two")).expect("fits");
    session.flush().await.expect("saved now");
    assert_eq!(lines(&home.store.path(session.id()).expect("there")).len(), 3);
}

async fn events_reach_the_disk_without_a_flush(home: Home) {
    let session = home.store.create(&home.cwd).expect("created");
    session.append(user("one")).expect("fits");
    for _ in 0..500 {
        if home.store.path(session.id()).is_ok() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the event was never written");
}
