//! `kill -9` at random moments of a run, and what must hold afterwards.
//!
//! Each trial runs the real program on a scripted model, kills it in a wanted phase of a random step, tells from what
//! is left which phase was really hit, and goes on with the session. `LORIMER_CRASH_KILLS` sets how many kills there
//! are, `LORIMER_CRASH_SEED` their randomness; the table of phases is printed with `--nocapture`.
//! Needs `python3` for the scripted model.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "the table is for whoever runs this by hand")]

mod chance;
mod doomed;
mod evidence;
mod place;
mod processes;
mod recovery;
mod script;
mod server;
mod trial;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use evidence::Phase;
use trial::Outcome;

/// Kills when `LORIMER_CRASH_KILLS` is not set.
const DEFAULT_KILLS: u64 = 12;

/// From this many kills on each phase must be hit [`MANY_HITS`] times.
const MANY_KILLS: u64 = 200;

/// Fewest hits of a phase in a long test.
const MANY_HITS: u64 = 20;

/// Trials at a time.
const WIDTH: usize = 4;

/// What was tried and what came of it.
struct Tally {
    seed: u64,
    kills: u64,
    started: u64,
    killed: u64,
    aimed: [u64; 6],
    under_way: [u64; 6],
    hits: [u64; 6],
    elsewhere: u64,
    ended_before: u64,
    torn: u64,
    failures: Vec<String>,
}

impl Tally {
    fn fewest_hits(&self) -> u64 {
        if self.kills >= MANY_KILLS { MANY_HITS } else { 1 }
    }

    /// The next trial: it aims at the phase that was hit least. None when there were enough kills, or when far more
    /// trials than kills did not make them enough.
    fn next(&mut self) -> Option<(u64, Phase)> {
        let short = |at: usize| self.hits[at] + self.under_way[at] < self.fewest_hits();
        let under_way: u64 = self.under_way.iter().sum();
        let enough = self.killed + under_way >= self.kills && !(0..Phase::ALL.len()).any(short);
        if enough || self.started >= 3 * self.kills + 30 {
            return None;
        }
        let least =
            (0..Phase::ALL.len()).min_by_key(|at| (self.hits[*at] + self.under_way[*at], self.aimed[*at]))?;
        self.started += 1;
        self.aimed[least] += 1;
        self.under_way[least] += 1;
        Some((self.started, Phase::ALL[least]))
    }

    fn add(&mut self, number: u64, aimed: Phase, outcome: Outcome) {
        self.under_way[index(aimed)] -= 1;
        match outcome.hit {
            Some(phase) => self.hits[index(phase)] += 1,
            None if outcome.killed => self.elsewhere += 1,
            None => self.ended_before += 1,
        }
        self.killed += u64::from(outcome.killed);
        self.torn += u64::from(outcome.torn);
        let (hit, kept) = (outcome.hit.map_or("none", Phase::name), outcome.kept.unwrap_or_default());
        self.failures.extend(outcome.failures.iter().map(|why| {
            let (seed, aimed) = (self.seed, aimed.name());
            format!("seed {seed}, trial {number} (aimed {aimed}, hit {hit}; {}): {why}", kept.display())
        }));
    }

    fn print(&self, took: std::time::Duration) {
        println!("{:<24}{:>7}{:>7}", "phase", "aimed", "hit");
        for phase in Phase::ALL {
            println!("{:<24}{:>7}{:>7}", phase.name(), self.aimed[index(phase)], self.hits[index(phase)]);
        }
        println!("{:<24}{:>14}", "in none of them", self.elsewhere);
        println!("{:<24}{:>14}", "kills", self.killed);
        println!("{:<24}{:>14}", "ended before the kill", self.ended_before);
        println!("{:<24}{:>14}", "torn lines", self.torn);
        println!("seed {}, {:.1} s", self.seed, took.as_secs_f64());
    }
}

fn index(phase: Phase) -> usize {
    Phase::ALL.iter().position(|one| *one == phase).unwrap_or(0)
}

fn number_from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a whole number")))
}

#[test]
fn a_killed_run_leaves_a_session_that_goes_on() {
    let started = Instant::now();
    let tally = Mutex::new(Tally {
        seed: number_from_environment("LORIMER_CRASH_SEED").unwrap_or(1),
        kills: number_from_environment("LORIMER_CRASH_KILLS").unwrap_or(DEFAULT_KILLS),
        started: 0,
        killed: 0,
        aimed: [0; 6],
        under_way: [0; 6],
        hits: [0; 6],
        elsewhere: 0,
        ended_before: 0,
        torn: 0,
        failures: Vec::new(),
    });
    let lock = || -> MutexGuard<'_, Tally> { tally.lock().unwrap_or_else(PoisonError::into_inner) };
    let seed = lock().seed;
    std::thread::scope(|scope| {
        for _ in 0..WIDTH {
            scope.spawn(|| {
                while let Some((number, phase)) = { lock().next() } {
                    let outcome = trial::run(seed, number, phase);
                    lock().add(number, phase, outcome);
                }
            });
        }
    });
    let tally = lock();
    tally.print(started.elapsed());
    assert!(tally.failures.is_empty(), "{} failures:\n{}", tally.failures.len(), tally.failures.join("\n"));
    for phase in Phase::ALL {
        let (hits, wanted) = (tally.hits[index(phase)], tally.fewest_hits());
        assert!(hits >= wanted, "{} was hit {hits} times instead of {wanted} (seed {seed})", phase.name());
    }
    assert!(tally.killed >= tally.kills, "{} kills instead of {}", tally.killed, tally.kills);
}
