//! Whoever sees to it that the work gets done: starts the program, decides what is asked, and starts it
//! again whenever it was killed. Looks before every step, because a process that was killed may have
//! done its work.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use windlass_core::approval::{Approval, ApprovalStatus, HoldStatus};
use windlass_spec::CallState;
use windlass_store::RunState;

use super::super::program::Place;
use super::look::Look;
use super::office::{ANSWER, EDITED, RUN, UNDONE, office};

/// More processes than any work needs that is killed a few times.
const PATIENCE: usize = 60;

/// How processes die.
pub(super) enum Fate {
    /// They do not. Points that are passed are listed, for each process in a file of its own.
    Listed,
    /// One process dies at a point.
    At(Point),
    /// One dies by its own tool, which is named with the moment.
    ByTool(String),
    /// One after the other dies when that much time has passed since the last one did.
    After(Vec<Duration>),
}

/// A point that a process passes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    /// Which process.
    pub(super) process: String,
    /// The point and how often it was passed.
    pub(super) passage: String,
}

impl Point {
    pub(super) fn name(&self) -> &str {
        let (name, _) = self.passage.split_once('#').unwrap();
        name
    }
}

/// A process that was killed.
#[derive(Debug)]
pub(super) struct Death {
    /// Which.
    pub(super) process: String,
    /// The tools at work, as far as the journal tells.
    pub(super) in_flight: Vec<String>,
}

/// What is done about the work in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    /// It is seen through.
    Finish,
    /// It is cancelled when the sub-agent asks.
    Cancel,
}

pub(super) struct Operator {
    place: Place,
    pub(super) plan: Plan,
    fate: Fate,
    /// When the last process was killed, or the first began.
    since: Instant,
    /// How often each kind of process was begun.
    begun: BTreeMap<String, usize>,
    pub(super) deaths: Vec<Death>,
    /// What was done, for whoever wonders.
    pub(super) log: Vec<String>,
}

/// What a process said and how it ended.
struct Ended {
    status: ExitStatus,
    told: String,
}

impl Ended {
    fn is_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }
}

impl Operator {
    pub(super) fn new(plan: Plan, fate: Fate) -> Self {
        let mut place = office();
        if let Fate::ByTool(moment) = &fate {
            place = place.with(&format!("die.{moment}"), "");
        }
        Self {
            place,
            plan,
            fate,
            since: Instant::now(),
            begun: BTreeMap::new(),
            deaths: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Sees the work through to its end and says what is left then.
    pub(super) fn work(&mut self) -> Look {
        self.since = Instant::now();
        for _ in 0..PATIENCE {
            let look = self.look();
            look.check();
            let Some(outermost) = look.outermost() else {
                self.drive("run", &RUN);
                continue;
            };
            if outermost.state == RunState::Ended {
                return look;
            }
            let run = outermost.run.id().to_string();
            let mut pending = look.approvals.iter();
            let pending = pending.find(|question| question.status() == ApprovalStatus::Pending);
            let held = look.holds.iter().find(|hold| {
                let is_to_be_undone = hold.call().to_string().ends_with(UNDONE);
                is_to_be_undone && hold.status() == HoldStatus::Held
            });
            if let Some(held) = held {
                self.undo(&held.call().to_string());
            } else if let Some(question) = pending {
                match self.plan == Plan::Cancel && question.run().as_str() != run {
                    true => self.cancel(&run),
                    false => self.decide(question, &look),
                }
            } else {
                self.drive("resume", &["runs", "resume", &run]);
            }
        }
        panic!("the work never ends");
    }

    /// Starts the run or goes on with it.
    fn drive(&mut self, kind: &str, arguments: &[&str]) {
        let ended = self.process(kind, arguments);
        // Who cancelled may have died before the run was told.
        let may_be_cancelled = self.plan == Plan::Cancel && self.begun.contains_key("cancel");
        let is_as_expected = match ended.status.code() {
            Some(0 | 4) => true,
            Some(130) => may_be_cancelled,
            _ => ended.is_killed(),
        };
        assert!(is_as_expected, "{}", ended.told);
    }

    /// Decides what somebody asks.
    fn decide(&mut self, question: &Approval, look: &Look) {
        let call = question.call();
        let id = call.to_string();
        let (record, _) = look.of(call).run.call(call).unwrap();
        let tool = record.tool_name().as_str();
        let is_lost = record.state() == CallState::Unknown;
        let decision: &[&str] = match tool {
            // Somebody has to see for themselves.
            _ if is_lost && look.count(tool) > 0 => &["respond", &id, "It happened"],
            _ if is_lost => &["respond", &id, "It did not happen"],
            "pay" => &["approve", &id, "--yes", "--edit", EDITED],
            "wire" => &["approve", &id, "--yes"],
            "fire" => &["reject", &id, "--message", "never"],
            "ask_human" => &["respond", &id, ANSWER],
            other => panic!("nobody should be asked about `{other}`"),
        };
        let kind = match is_lost {
            true => format!("tell {tool}"),
            false => format!("decide {tool}"),
        };
        let ended = self.process(&kind, &[&["approvals"], decision].concat());
        let is_taken = ended.status.success() || ended.is_killed();
        assert!(is_taken, "{}", ended.told);
        if ended.status.success() {
            let look = self.look();
            let mut settled = look.approvals.iter();
            let is_settled = settled.any(|settled| {
                settled.request() == question.request()
                    && settled.status() != ApprovalStatus::Pending
            });
            assert!(is_settled, "a decision that was confirmed is not there");
        }
    }

    fn cancel(&mut self, run: &str) {
        let ended = self.process("cancel", &["runs", "cancel", run]);
        let is_as_expected = ended.status.success() || ended.is_killed();
        assert!(is_as_expected, "{}", ended.told);
    }

    /// Undoes the held call, also while a process waits with it.
    fn undo(&mut self, call: &str) {
        // One that was killed may have done it all the same.
        let mut may_be_done = false;
        loop {
            let ended = self.process("undo", &["holds", "undo", call]);
            if !ended.is_killed() {
                let is_too_late = ended.status.code() == Some(8);
                let is_done = ended.status.success() || (may_be_done && is_too_late);
                assert!(is_done, "{}", ended.told);
                return;
            }
            may_be_done = true;
        }
    }

    /// Runs the program, which may die. While it waits with the call that is to be undone, that is
    /// undone.
    fn process(&mut self, kind: &str, arguments: &[&str]) -> Ended {
        let number = self.begun.entry(kind.to_owned()).or_default();
        *number += 1;
        let process = format!("{kind} {number}");
        let mut command = self.place.command(arguments);
        match &self.fate {
            Fate::Listed => {
                let list = self.place.path(&format!("points {process}"));
                command.env("WINDLASS_CRASH_LIST", list);
            }
            Fate::At(point) if point.process == process => {
                command.env("WINDLASS_CRASH_AT", &point.passage);
            }
            _ => {}
        }
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let readers = [
            read(child.stdout.take().unwrap(), sender.clone()),
            read(child.stderr.take().unwrap(), sender),
        ];
        let mut told = format!("{process}: {arguments:?}\n");
        loop {
            let line = match self.time_left() {
                Some(left) => lines.recv_timeout(left),
                None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match line {
                Ok(line) => {
                    told += &line;
                    told.push('\n');
                    if let Some((_, call)) = line.split_once("windlass holds undo ")
                        && call.ends_with(UNDONE)
                    {
                        self.undo(call);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    // It may have ended this very moment.
                    let _ = child.kill();
                    self.forget_time();
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = child.wait().unwrap();
        for reader in readers {
            reader.join().unwrap();
        }
        told += &format!("{status}\n");
        self.log.push(told.clone());
        let ended = Ended { status, told };
        if ended.is_killed() {
            self.since = Instant::now();
            // What is held is undone while another process is at work; that one is looked at later.
            let in_flight = match kind {
                "undo" => Vec::new(),
                _ => self.look().in_flight(),
            };
            self.deaths.push(Death { process, in_flight });
        }
        ended
    }

    /// Looks at what is there. No process lives meanwhile, so this time does not count.
    fn look(&mut self) -> Look {
        let began = Instant::now();
        let look = Look::at(&self.place);
        self.since += began.elapsed();
        look
    }

    /// How long processes have lived since the last one was killed, or in all.
    pub(super) fn worked(&self) -> Duration {
        self.since.elapsed()
    }

    /// How long the process at hand has to live.
    fn time_left(&self) -> Option<Duration> {
        match &self.fate {
            Fate::After(times) => {
                let time = times.first()?;
                Some(time.saturating_sub(self.worked()))
            }
            _ => None,
        }
    }

    fn forget_time(&mut self) {
        if let Fate::After(times) = &mut self.fate {
            times.remove(0);
        }
    }

    /// The points that were passed, of each process in order.
    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for (kind, count) in &self.begun {
            for number in 1..=*count {
                let process = format!("{kind} {number}");
                let passed = self.place.read(&format!("points {process}"));
                points.extend(passed.lines().map(|passage| Point {
                    process: process.clone(),
                    passage: passage.to_owned(),
                }));
            }
        }
        points
    }
}

/// Sends the lines of an output until it is closed.
fn read(output: impl Read + Send + 'static, lines: Sender<String>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    })
}
