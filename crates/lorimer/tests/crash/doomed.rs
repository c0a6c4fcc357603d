//! The run that is killed: started, watched until its moment, shot.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, Result};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lorimer_protocol::{Event, Payload};

use crate::chance::Chance;
use crate::evidence::Phase;
use crate::place::{PATIENCE, Place, wait_for};
use crate::processes::{JournalThread, children_of};
use crate::script::call_id;
use crate::server::Relay;

/// The pause between two looks of a watcher.
const LOOK: Duration = Duration::from_micros(500);

/// Growth by more than this is a long reply.
const LONG_JUMP: u64 = 100_000;

/// One watcher at a time may look at its log without a pause.
static SPINNING: Mutex<()> = Mutex::new(());

/// What a trial aims at.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    /// The wanted phase.
    pub phase: Phase,
    /// At this step, counted from 1.
    pub step: u64,
    /// In the write of this step's long reply, to tear a line. Only for appends.
    pub tear: bool,
}

/// What a look at the log's length says.
enum Watch {
    Shoot,
    Closely,
    Calmly,
}

/// What was seen in the instant of the kill.
#[derive(Debug)]
pub struct Shot {
    /// Just before the signal.
    pub at: Instant,
    /// The state of the thread that writes the log.
    pub journal: char,
    /// Whether the log was seen to grow just before.
    pub grew: bool,
    /// Direct children, when there was time to look.
    pub children: Vec<u32>,
}

/// A run that will not reach its end.
#[derive(Debug)]
pub struct Doomed {
    child: Child,
    journal: Option<JournalThread>,
    said: Arc<Mutex<Vec<Event>>>,
    reader: JoinHandle<()>,
}

impl Doomed {
    /// Starts the run.
    pub fn start(place: &Place, relay: &Relay, settings: &[String]) -> Result<Self> {
        let mut command = place.run(relay.port);
        for setting in settings {
            command.args(["-c", setting]);
        }
        let stderr = File::create(place.root.join("doomed.stderr"))?;
        let mut child =
            command.arg("work through all the steps").stdout(Stdio::piped()).stderr(stderr).spawn()?;
        let out = child.stdout.take().ok_or_else(|| Error::other("no standard output"))?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let reader = std::thread::spawn(move || listen(out, &heard));
        let pid = child.id();
        let journal = wait_for(&mut child, LOOK, || JournalThread::find(pid));
        Ok(Self { child, journal, said, reader })
    }

    /// Waits for the wanted moment and a little more; `None` when the run ended before it came.
    pub fn shoot(&mut self, place: &Place, relay: &Relay, aim: Aim, chance: &mut Chance) -> Option<Shot> {
        let grew = aim.phase == Phase::Append;
        if aim.tear {
            self.wait_for_long_line(place, relay, aim.step)?;
        } else if grew {
            self.wait_for_growth(place, chance.below(4 * aim.step))?;
        } else {
            self.wait_for_phase(place, relay, aim, chance)?;
            std::thread::sleep(chance.pause(aim.phase.longest_pause_us()));
        }
        let journal = self.journal.as_ref().map_or('?', JournalThread::state);
        let at = Instant::now();
        let children = if grew { Vec::new() } else { children_of(self.child.id()) };
        let running = matches!(self.child.try_wait(), Ok(None));
        self.child.kill().ok()?;
        self.child.wait().ok()?;
        running.then_some(Shot { at, journal, grew, children })
    }

    /// The events that came on standard output, once nothing of the run is left.
    pub fn into_said(self) -> Vec<Event> {
        // A reader that panicked has left what it heard.
        let _ = self.reader.join();
        std::mem::take(&mut self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wait_for_phase(&mut self, place: &Place, relay: &Relay, aim: Aim, chance: &mut Chance) -> Option<()> {
        let at_the_reply = chance.below(4) == 0;
        let (said, mut looked_at) = (Arc::clone(&self.said), 0);
        wait_for(&mut self.child, LOOK, || {
            let come = match aim.phase {
                Phase::FirstByte => requests(relay) >= aim.step,
                Phase::Stream | Phase::CallGap => {
                    let said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    let new = &said[looked_at..];
                    looked_at = said.len();
                    new.iter().any(|event| begins(aim, at_the_reply, event))
                }
                Phase::Body => place.marks.begun(&call_id(aim.step, 0)) > 0,
                Phase::RetryWait => place.log().is_some_and(|log| mentions_retry(&log)),
                Phase::Append => true,
            };
            come.then_some(())
        })
    }

    /// Waits until the log has grown as often as wanted; its appearance is the first time.
    fn wait_for_growth(&mut self, place: &Place, times_before: u64) -> Option<()> {
        let log = wait_for(&mut self.child, LOOK, || place.log())?;
        if times_before == 0 {
            return Some(());
        }
        let (mut length, mut grown) = (0, 0);
        self.watch_length(&log, |now| {
            grown += u64::from(now > length);
            length = now;
            match grown {
                _ if grown > times_before => Watch::Shoot,
                _ if grown == times_before => Watch::Closely,
                _ => Watch::Calmly,
            }
        })
    }

    /// Waits until a step's long reply begins to appear in the log.
    fn wait_for_long_line(&mut self, place: &Place, relay: &Relay, step: u64) -> Option<()> {
        wait_for(&mut self.child, LOOK, || (requests(relay) >= step).then_some(()))?;
        // What is seen of a long write are small steps.
        let mut before = None;
        self.watch_length(&place.log()?, |now| {
            let before = *before.get_or_insert(now);
            if now > before + LONG_JUMP { Watch::Shoot } else { Watch::Closely }
        })
    }

    /// Looks at the length of the log until `judge` says that this is the moment.
    fn watch_length(&mut self, log: &Path, mut judge: impl FnMut(u64) -> Watch) -> Option<()> {
        let file = File::open(log).ok()?;
        let limit = Instant::now() + PATIENCE;
        let (mut spinning, mut looks) = (None, 0_u32);
        while Instant::now() < limit {
            match judge(file.metadata().ok()?.len()) {
                Watch::Shoot => return Some(()),
                Watch::Closely if spinning.is_none() => spinning = SPINNING.try_lock().ok(),
                Watch::Closely | Watch::Calmly => {}
            }
            looks = looks.wrapping_add(1);
            if spinning.is_none() {
                std::thread::sleep(LOOK);
            } else if !looks.is_multiple_of(1024) {
                continue;
            }
            if !matches!(self.child.try_wait(), Ok(None)) {
                return None;
            }
        }
        None
    }
}

fn listen(out: ChildStdout, heard: &Mutex<Vec<Event>>) {
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        // The last line may be torn, and the result of a run is no event.
        if let Ok(event) = Event::from_json(&line) {
            heard.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        }
    }
}

/// Whether the wanted phase begins with this event.
fn begins(aim: Aim, at_the_reply: bool, event: &Event) -> bool {
    let step = match event.payload() {
        Ok(Payload::AssistantChunk(chunk)) if aim.phase == Phase::Stream => chunk.step,
        Ok(Payload::AssistantMessage(reply)) if aim.phase == Phase::CallGap && at_the_reply => reply.step,
        Ok(Payload::ToolCall(call)) if aim.phase == Phase::CallGap && !at_the_reply => call.step,
        _ => return false,
    };
    step == aim.step
}

fn requests(relay: &Relay) -> u64 {
    u64::try_from(relay.exchanges().len()).unwrap_or(u64::MAX)
}

fn mentions_retry(log: &Path) -> bool {
    std::fs::read_to_string(log).is_ok_and(|text| text.contains("\"type\":\"llm/retry\""))
}
