//! What compressed logs need beside the tests of `store.rs`: cut and broken frames, titles in frames.

use std::path::{Path, PathBuf};

use lorimer_protocol::{
    Draft, Event, Message, SessionId, SessionTitle, Source, TitleSource, TurnEnd, TurnEndReason, TurnStart,
};
use lorimer_session::{Compression, OpenError, Problem, Session, Store, StoreOptions, check_invariants};

struct Home {
    _dir: tempfile::TempDir,
    store: Store,
    cwd: PathBuf,
}

fn home() -> Home {
    let dir = tempfile::tempdir().expect("a directory");
    let options = StoreOptions { compression: Compression::Zstd, ..StoreOptions::default() };
    Home { store: Store::new(&dir.path().join("home"), options), cwd: dir.path().join("work"), _dir: dir }
}

/// One whole turn that says `text`.
async fn turn(session: &Session, turn: u64, text: &str) {
    let message = Message::user_text(format!("m{turn}"), text, Source::user());
    session.append(Draft::new(&TurnStart { turn })).expect("fits");
    session.append(Draft::new(&message).on_surface()).expect("fits");
    session.append(Draft::new(&TurnEnd { turn, reason: TurnEndReason::Completed })).expect("fits");
    session.flush().await.expect("saved");
}

async fn stored_turn(home: &Home) -> (SessionId, PathBuf) {
    let session = home.store.create(&home.cwd).expect("created");
    turn(&session, 1, "one").await;
    let id = session.id().clone();
    drop(session);
    let path = home.store.path(&id).expect("there");
    (id, path)
}

fn lines(path: &Path) -> Vec<String> {
    let bytes = zstd::decode_all(std::fs::read(path).expect("readable").as_slice()).expect("frames");
    String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
}

/// Where each frame of a compressed log ends.
fn frame_ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = vec![];
    let mut at = 0;
    while at < bytes.len() {
        at += zstd::zstd_safe::find_frame_compressed_size(&bytes[at..]).expect("a frame");
        ends.push(at);
    }
    ends
}

#[tokio::test]
async fn every_cut_of_a_compressed_log_opens_and_keeps_every_whole_frame() {
    let home = home();
    let (id, path) = stored_turn(&home).await;
    let opened = home.store.open(&id).expect("opens");
    turn(&opened.session, 2, &"two ".repeat(50)).await;
    drop(opened);
    let whole = std::fs::read(&path).expect("readable");
    let ends = frame_ends(&whole);
    assert!(ends.len() >= 3, "a header and two batches");
    for length in ends[0]..=whole.len() {
        std::fs::write(&path, &whole[..length]).expect("written");
        let opened = home.store.open(&id).unwrap_or_else(|error| panic!("cut at {length}: {error}"));
        assert_eq!(opened.torn_copy.is_some(), !ends.contains(&length), "cut at {length}");
        opened.session.flush().await.expect("saved");
        drop(opened);
        let kept = ends.iter().rev().find(|end| **end <= length).expect("a frame");
        assert!(std::fs::read(&path).expect("readable").starts_with(&whole[..*kept]), "cut at {length}");
        let events: Vec<Event> =
            home.store.events(&id).expect("opens").map(|event| event.expect("whole")).collect();
        assert_eq!(check_invariants(&events), [], "cut at {length}");
    }
}

#[tokio::test]
async fn whole_lines_of_a_cut_frame_are_written_again() {
    let home = home();
    let (id, path) = stored_turn(&home).await;
    let lines_before = lines(&path);
    let whole = std::fs::read(&path).expect("readable");
    // Without its checksum's last byte the frame still decodes to the end.
    std::fs::write(&path, &whole[..whole.len() - 1]).expect("written");
    let opened = home.store.open(&id).expect("opens");
    assert!(opened.torn_copy.is_some() && !opened.closed_turn);
    opened.session.flush().await.expect("saved");
    drop(opened);
    assert_eq!(lines(&path)[..lines_before.len()], lines_before[..]);
}

#[tokio::test]
async fn a_broken_frame_before_whole_ones_opens_read_only() {
    let home = home();
    let (id, path) = stored_turn(&home).await;
    let opened = home.store.open(&id).expect("opens");
    turn(&opened.session, 2, "two").await;
    drop(opened);
    let mut bytes = std::fs::read(&path).expect("readable");
    let end = frame_ends(&bytes)[1];
    bytes[end - 1] ^= 0xff;
    std::fs::write(&path, &bytes).expect("written");
    let error = home.store.open(&id).err().expect("refused");
    assert!(matches!(error, OpenError::ReadOnly { problem: Problem::Damaged { .. }, .. }), "{error}");
    assert_eq!(std::fs::read(&path).expect("readable"), bytes, "nothing was changed");
}

#[tokio::test]
async fn a_log_goes_on_in_its_own_encoding_whatever_the_setting() {
    let home = home();
    let (id, path) = stored_turn(&home).await;
    let plain = Store::new(home.store.root().parent().expect("a home"), StoreOptions::default());
    let opened = plain.open(&id).expect("opens");
    turn(&opened.session, 2, "two").await;
    assert_eq!(plain.path(&id).expect("there"), path);
    assert_eq!(lines(&path).len(), 8, "header, two turns, a mark");
}

#[tokio::test]
async fn a_list_finds_the_first_text_in_the_head_and_the_last_title_in_the_tail() {
    let home = home();
    let session = home.store.create(&home.cwd).expect("created");
    // Letters in no order, so that the log stays larger than what is looked at.
    let next = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    let noise: String = std::iter::successors(Some(1_u64), next)
        .map(|state| char::from(b'a' + (state >> 33) as u8 % 26))
        .take(40_000)
        .collect();
    turn(&session, 1, "the first words").await;
    for number in 2..5 {
        turn(&session, number, &noise).await;
    }
    let title = SessionTitle { title: "at the end".into(), message_seqs: vec![], source: TitleSource::User };
    session.append(Draft::new(&title)).expect("fits");
    session.flush().await.expect("saved");
    let listed = home.store.list_of(&home.cwd);
    let size = std::fs::metadata(home.store.path(session.id()).expect("there")).expect("there").len();
    assert!(size > 32 * 1024, "{size}");
    assert_eq!(listed[0].title.as_deref(), Some("at the end"));
    assert_eq!(listed[0].first_user_text.as_deref(), Some("the first words"));
    assert_eq!((listed[0].size_bytes, listed[0].parent_session.as_ref()), (size, None));
    let child = home.store.fork(session.id(), lorimer_session::ForkPoint::End).expect("forks");
    let listed = home.store.list();
    let child = listed.iter().find(|summary| summary.header.id == child).expect("listed");
    assert_eq!(child.parent_session.as_ref(), Some(session.id()));
}
