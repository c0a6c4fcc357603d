//! Forks, repairs and exports of stored sessions, in both encodings.

use std::path::{Path, PathBuf};

use lorimer_protocol::{
    AssistantChunk, Draft, Event, Message, SessionId, Source, StepEnd, StepStart, StreamChunk, TurnEnd,
    TurnEndReason, TurnStart,
};
use lorimer_session::{
    Compression, ForkError, ForkPoint, RepairError, Session, Store, StoreOptions, check_invariants,
};
use proptest::prelude::*;

const BOTH: [Compression; 2] = [Compression::None, Compression::Zstd];

struct Home {
    _dir: tempfile::TempDir,
    store: Store,
    cwd: PathBuf,
}

fn home(compression: Compression) -> Home {
    let dir = tempfile::tempdir().expect("a directory");
    let options = StoreOptions { compression, sync: false, ..StoreOptions::default() };
    Home { store: Store::new(&dir.path().join("home"), options), cwd: dir.path().join("work"), _dir: dir }
}

fn say(session: &Session, turn: u64, chunks: usize) {
    let append = |draft: Draft| session.append(draft).expect("fits");
    append(Draft::new(&TurnStart { turn }));
    append(Draft::new(&Message::user_text(format!("m{turn}"), "text", Source::user())).on_surface());
    append(Draft::new(&StepStart { turn, step: 1 }));
    for index in 0..chunks {
        let chunk = StreamChunk::TextDelta { index: 0, text: format!("piece {index} ") };
        append(Draft::new(&AssistantChunk { turn, step: 1, chunk }));
    }
    append(Draft::new(&StepEnd { turn, step: 1 }));
    append(Draft::new(&TurnEnd { turn, reason: TurnEndReason::Completed }));
}

async fn stored(home: &Home, turns: &[usize]) -> SessionId {
    let session = home.store.create(&home.cwd).expect("created");
    for (turn, chunks) in turns.iter().enumerate() {
        say(&session, turn as u64 + 1, *chunks);
        session.flush().await.expect("saved");
    }
    session.id().clone()
}

fn rows(store: &Store, id: &SessionId) -> Vec<String> {
    events(store, id).iter().map(Event::to_json).collect()
}

fn events(store: &Store, id: &SessionId) -> Vec<Event> {
    store.events(id).expect("opens").map(|event| event.expect("whole")).collect()
}

fn bytes(store: &Store, id: &SessionId) -> Vec<u8> {
    std::fs::read(store.path(id).expect("there")).expect("readable")
}

fn session_count(store: &Store) -> usize {
    store.list().len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Forked at every end of a turn, a session goes on there and its parent stays as it was.
    #[test]
    fn a_fork_at_any_turn_goes_on_and_leaves_its_parent_alone(
        turns in prop::collection::vec(0_usize..6, 1..5),
        compressed in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let home = home(BOTH[usize::from(compressed)]);
        let parent = runtime.block_on(stored(&home, &turns));
        let (before, parent_rows) = (bytes(&home.store, &parent), rows(&home.store, &parent));
        for turn in 1..=turns.len() as u64 {
            let child = home.store.fork(&parent, ForkPoint::Turn(turn)).expect("forks");
            let stored = rows(&home.store, &child);
            let length = stored.len() - 1;
            prop_assert_eq!(&stored[..length], &parent_rows[..length]);
            prop_assert!(stored[length].contains("session/end-seed"));
            let opened = home.store.open(&child).expect("opens");
            prop_assert!(opened.appended.is_empty() && opened.torn_copy.is_none());
            opened.session.with_log(|log| {
                assert_eq!(log.header().parent_session.as_ref(), Some(&parent));
                assert_eq!(log.header().seed_length, Some(length as u64));
                assert_eq!(log.header().cwd.as_deref().map(Path::new), Some(home.cwd.as_path()));
                assert_eq!(log.messages().count() as u64, turn);
            });
            say(&opened.session, turn + 1, 3);
            runtime.block_on(opened.session.flush()).expect("saved");
            drop(opened);
            prop_assert_eq!(check_invariants(&events(&home.store, &child)), []);
        }
        prop_assert_eq!(bytes(&home.store, &parent), before);
    }
}

#[tokio::test]
async fn a_boundary_has_to_exist_and_lie_outside_a_turn() {
    for compression in BOTH {
        let home = home(compression);
        let id = stored(&home, &[4, 0]).await;
        let last = rows(&home.store, &id).len() as u64 - 1;
        let error = |point| home.store.fork(&id, point).expect_err("refused").to_string();
        assert_eq!(
            error(ForkPoint::Seq(99)),
            format!("fork boundary 99 does not exist in session \"{id}\" (last seq: {last})")
        );
        for inside in [0, 3, 5] {
            assert_eq!(
                error(ForkPoint::Seq(inside)),
                format!("fork boundary {inside} of session \"{id}\" ends inside open turn 1")
            );
        }
        assert!(matches!(
            home.store.fork(&id, ForkPoint::Turn(3)),
            Err(ForkError::NoSuchTurn { last_turn: 2, .. })
        ));
        assert!(matches!(home.store.fork(&id, ForkPoint::Turn(0)), Err(ForkError::NoSuchTurn { .. })));
        assert!(home.store.fork(&"nobody".into(), ForkPoint::End).is_err());
        assert_eq!(session_count(&home.store), 1, "nothing is left of a refused fork");
        let whole = home.store.fork(&id, ForkPoint::Seq(last)).expect("the last event ends a turn");
        let again = home.store.fork(&whole, ForkPoint::End).expect("forks");
        assert_eq!(rows(&home.store, &whole), rows(&home.store, &again), "one mark is enough");
    }
}

#[tokio::test]
async fn a_session_that_is_being_written_can_be_forked_between_its_turns() {
    for compression in BOTH {
        let home = home(compression);
        let session = home.store.create(&home.cwd).expect("created");
        say(&session, 1, 2);
        session.append(Draft::new(&TurnStart { turn: 2 })).expect("fits");
        session.flush().await.expect("saved");
        assert!(matches!(
            home.store.fork(session.id(), ForkPoint::End),
            Err(ForkError::OpenTurn { turn: 2, .. })
        ));
        let child = home.store.fork(session.id(), ForkPoint::Turn(1)).expect("forks");
        home.store.open(&child).expect("opens");
    }
}

fn encode(path: &Path, text: &str) {
    let compressed = path.extension().is_some_and(|extension| extension == "zstd");
    let data = if compressed { zstd::encode_all(text.as_bytes(), 1).expect("a frame") } else { text.into() };
    std::fs::write(path, data).expect("written");
}

fn exported(store: &Store, id: &SessionId) -> String {
    let mut out = Vec::new();
    store.export(id, &mut out).expect("exported");
    String::from_utf8(out).expect("text")
}

#[tokio::test]
async fn what_a_damaged_log_still_holds_goes_to_a_new_session() {
    for compression in BOTH {
        let home = home(compression);
        let id = stored(&home, &[0, 4]).await;
        assert!(matches!(
            home.store.repair(&id, Path::new("/elsewhere")),
            Err(RepairError::NothingToRepair(_))
        ));
        let good: Vec<String> = exported(&home.store, &id).lines().map(str::to_owned).collect();
        let unknown = r#"{"type":"later/thing","seq":7,"time":0,"data":{}}"#;
        let gap = r#"{"type":"turn/start","seq":70,"time":0,"data":{"turn":2}}"#;
        for bad in [unknown, gap, "{\"type\":"] {
            // The second turn has begun: seqs 5 and 6 are its start and its message.
            let mut lines = good.clone();
            lines[8] = bad.to_owned();
            let path = home.store.path(&id).expect("there");
            encode(&path, &(lines.join("\n") + "\n"));
            let damaged = bytes(&home.store, &id);
            let repaired = home.store.repair(&id, Path::new("/elsewhere")).expect("repaired");
            assert_eq!(repaired.kept_events, 7);
            assert!(
                repaired.dropped.starts_with("everything from event line 8 on: "),
                "{}",
                repaired.dropped
            );
            assert_eq!(bytes(&home.store, &id), damaged, "the old log stays");
            let opened = home.store.open(&repaired.new_id).expect("opens");
            assert_eq!(opened.session.with_log(|log| log.messages().count()), 2);
            drop(opened);
            assert_eq!(check_invariants(&events(&home.store, &repaired.new_id)), []);
        }
        let path = home.store.path(&id).expect("there");
        encode(
            &path,
            &(["\"nothing\""]
                .into_iter()
                .chain(good[1..].iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join("\n")
                + "\n"),
        );
        let repaired = home.store.repair(&id, Path::new("/elsewhere")).expect("repaired");
        assert_eq!(repaired.dropped, "its header, which is damaged");
        let opened = home.store.open(&repaired.new_id).expect("opens").session;
        let header = opened.with_log(|log| log.header().clone());
        assert_eq!((header.cwd.as_deref(), header.parent_session.as_ref()), (Some("/elsewhere"), Some(&id)));
        drop(opened);
        let (kept, all) = (exported(&home.store, &repaired.new_id), good[1..].join("\n"));
        let events = kept.split_once('\n').map_or("", |(_, events)| events);
        assert!(events.starts_with(&all), "{events}");
        let mut lines = good.clone();
        lines[1] = unknown.to_owned();
        encode(&home.store.path(&id).expect("there"), &(lines.join("\n") + "\n"));
        assert!(matches!(
            home.store.repair(&id, Path::new("/elsewhere")),
            Err(RepairError::NothingToKeep { .. })
        ));
    }
}

#[tokio::test]
async fn an_export_is_the_plain_log() {
    let plain = home(Compression::None);
    let id = stored(&plain, &[4, 1]).await;
    assert_eq!(exported(&plain.store, &id).into_bytes(), bytes(&plain.store, &id));
    let compressed = home(Compression::Zstd);
    let id = stored(&compressed, &[4, 1]).await;
    let text = exported(&compressed.store, &id);
    assert_eq!(
        text.into_bytes(),
        zstd::decode_all(bytes(&compressed.store, &id).as_slice()).expect("frames")
    );
}
