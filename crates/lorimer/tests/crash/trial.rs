//! One kill, from a fresh home to the end of the run that goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::chance::Chance;
use crate::doomed::{Aim, Doomed};
use crate::evidence::{Evidence, Phase, whole_lines};
use crate::place::Place;
use crate::processes::wait_until_gone;
use crate::recovery::{
    check_bytes_kept, check_continue, check_durable_before_effects, check_final_log, check_pairs, check_show,
};
use crate::script::{STEPS, Variant, script};
use crate::server::{ModelServer, Pace, Relay};

/// The pause after each piece of a reply, in milliseconds: twenty steps take two seconds and more.
const PIECE_DELAY_MS: u64 = 5;

/// How long the first byte of a reply is held back.
const FIRST_BYTE_HOLD: Duration = Duration::from_millis(30);

/// What a trial came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Whether the run was killed; it may have ended before its moment came.
    pub killed: bool,
    /// The phase that was hit.
    pub hit: Option<Phase>,
    /// Whether the kill tore a line.
    pub torn: bool,
    /// What does not hold.
    pub failures: Vec<String>,
    /// Where everything of a failed trial is kept.
    pub kept: Option<PathBuf>,
}

/// Runs one trial.
pub fn run(seed: u64, number: u64, phase: Phase) -> Outcome {
    let mut chance = Chance::new(seed, number);
    let mut outcome = Outcome::default();
    let folder = match tempfile::Builder::new().prefix("lorimer-crash-").tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            outcome.failures.push(format!("no folder: {error}"));
            return outcome;
        }
    };
    if let Err(why) = kill_and_recover(folder.path(), phase, &mut chance, &mut outcome) {
        outcome.failures.push(why);
    }
    if !outcome.failures.is_empty() {
        outcome.kept = Some(folder.keep());
    }
    outcome
}

fn kill_and_recover(
    folder: &Path,
    phase: Phase,
    chance: &mut Chance,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let broken = |error: std::io::Error| format!("the trial itself: {error}");
    let place = Place::make(folder).map_err(broken)?;
    let step = 1 + chance.below(STEPS);
    let aim = Aim { phase, step, tear: phase == Phase::Append && chance.below(3) == 0 };
    let variant = Variant {
        failing_request: (phase == Phase::RetryWait).then_some(step),
        long_reply: aim.tear.then_some(step),
    };
    let script_path = place.root.join("script.json");
    std::fs::write(&script_path, script(&place.marks, variant).to_string()).map_err(broken)?;
    let request_log = place.root.join("requests.jsonl");
    let pace = Pace { delay_ms: PIECE_DELAY_MS, piece_chars: if aim.tear { 2_000_000 } else { 64 } };
    let server = ModelServer::start(&script_path, &request_log, pace).map_err(broken)?;
    let Some(evidence) = kill(&place, &server, aim, chance, &mut outcome.failures)? else {
        return Ok(());
    };
    drop(server);
    outcome.killed = true;
    outcome.hit = evidence.phase();
    outcome.torn = whole_lines(&evidence.disk).len() < evidence.disk.len();
    outcome.failures.extend(check_durable_before_effects(&evidence, &request_log).err());
    recover(&place, &evidence, &script_path, &mut outcome.failures)
}

/// Starts the run, kills it at its moment, and gathers what is left once all of it is gone.
fn kill(
    place: &Place,
    server: &ModelServer,
    aim: Aim,
    chance: &mut Chance,
    failures: &mut Vec<String>,
) -> Result<Option<Evidence>, String> {
    let broken = |error: std::io::Error| format!("the run to be killed: {error}");
    let relay = Relay::start(server.port, FIRST_BYTE_HOLD).map_err(broken)?;
    let write_delay_ms = [10, 50, 200][usize::try_from(chance.below(3)).unwrap_or(0)];
    let settings =
        [format!("session.write_delay_ms={write_delay_ms}"), "retry.initial_delay_ms=700".to_owned()];
    let mut doomed = Doomed::start(place, &relay, &settings).map_err(broken)?;
    let shot = doomed.shoot(place, &relay, aim, chance);
    let exchanges = relay.exchanges();
    let children = shot.as_ref().map(|shot| shot.children.clone()).unwrap_or_default();
    failures.extend(wait_until_gone(place, &children).err());
    let said = doomed.into_said();
    let Some(shot) = shot else {
        return Ok(None);
    };
    let log = place.log().ok_or("there is no log after the kill")?;
    let disk = std::fs::read(log).map_err(broken)?;
    Evidence::new(disk, said, &place.marks, exchanges, shot).map(Some)
}

/// Looks at the killed session, goes on with it, and checks all that is there then.
fn recover(
    place: &Place,
    evidence: &Evidence,
    script: &Path,
    failures: &mut Vec<String>,
) -> Result<(), String> {
    let log = place.log().ok_or("the log is gone")?;
    failures.extend(check_show(place, &log, evidence).err());
    // The rest of the script comes from a server that neither pauses nor fails.
    let text = std::fs::read_to_string(script).map_err(|error| error.to_string())?;
    let mut plain: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    plain["fail"] = serde_json::json!({});
    let script = script.with_file_name("script-without-failures.json");
    std::fs::write(&script, plain.to_string()).map_err(|error| error.to_string())?;
    let request_log = place.root.join("requests-after.jsonl");
    let server = ModelServer::start(&script, &request_log, Pace { delay_ms: 0, piece_chars: 64_000 })
        .map_err(|error| error.to_string())?;
    let checks = [
        check_continue(place, &server),
        check_bytes_kept(&log, evidence),
        check_final_log(&log, &place.marks),
        check_pairs(&server),
        wait_until_gone(place, &[]),
    ];
    failures.extend(checks.into_iter().filter_map(Result::err));
    Ok(())
}
