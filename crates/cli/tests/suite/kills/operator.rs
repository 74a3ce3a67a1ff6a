//! The operator of the kill tests: starts the program, decides requests, and restarts the program after a kill.
//! It reads the stored state before every step, because a killed process may have finished its work.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use windlass_core::approval::{Approval, ApprovalStatus, HoldStatus};
use windlass_spec::CallState;
use windlass_store::RunState;

use super::super::program::TestProject;
use super::office::{ANSWER, EDITED, RUN, UNDONE, office_project};
use super::stored_state::StoredState;

/// More processes than a run with a few kills needs.
const MAX_PROCESSES: usize = 60;

/// When processes are killed.
pub(super) enum CrashPlan {
    /// Never. The passed crash points are listed, in one file per process.
    Listed,
    /// One process is killed at a crash point.
    At(Point),
    /// One process is killed by its own tool, before or after its effect.
    ByTool(String),
    /// Processes are killed one after the other, each after this time since the previous kill.
    After(Vec<Duration>),
}

/// A crash point of a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    /// The process.
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
    /// The process.
    pub(super) process: String,
    /// The tools that were running, by the journal.
    pub(super) in_flight: Vec<String>,
}

/// The intended end of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// The run completes.
    Finish,
    /// The run is cancelled when the sub-agent asks.
    Cancel,
}

pub(super) struct Operator {
    project: TestProject,
    pub(super) goal: Goal,
    crash_plan: CrashPlan,
    /// The time of the last kill, or of the first start.
    since: Instant,
    /// How often each kind of process was started.
    started_counts: BTreeMap<String, usize>,
    pub(super) deaths: Vec<Death>,
    /// The output of all processes, for failure messages.
    pub(super) log: Vec<String>,
}

/// The output and exit status of a process.
struct ProcessResult {
    status: ExitStatus,
    output: String,
}

impl ProcessResult {
    fn is_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }
}

impl Operator {
    pub(super) fn new(goal: Goal, crash_plan: CrashPlan) -> Self {
        let mut project = office_project();
        if let CrashPlan::ByTool(moment) = &crash_plan {
            project = project.with(&format!("die.{moment}"), "");
        }
        Self {
            project,
            goal,
            crash_plan,
            since: Instant::now(),
            started_counts: BTreeMap::new(),
            deaths: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Runs the work to its end and returns the final state.
    pub(super) fn work(&mut self) -> StoredState {
        self.since = Instant::now();
        for _ in 0..MAX_PROCESSES {
            let stored_state = self.stored_state();
            stored_state.check();
            let Some(outermost) = stored_state.outermost() else {
                self.drive("run", &RUN);
                continue;
            };
            if outermost.state == RunState::Ended {
                return stored_state;
            }
            let run = outermost.run.id().to_string();
            let mut pending = stored_state.approvals.iter();
            let pending = pending.find(|question| question.status() == ApprovalStatus::Pending);
            let held = stored_state.holds.iter().find(|hold| {
                let is_to_be_undone = hold.call().to_string().ends_with(UNDONE);
                is_to_be_undone && hold.status() == HoldStatus::Held
            });
            if let Some(held) = held {
                self.undo(&held.call().to_string());
            } else if let Some(question) = pending {
                match self.goal == Goal::Cancel && question.run().as_str() != run {
                    true => self.cancel(&run),
                    false => self.decide(question, &stored_state),
                }
            } else {
                self.drive("resume", &["runs", "resume", &run]);
            }
        }
        panic!("the work never ends");
    }

    /// Starts or resumes the run.
    fn drive(&mut self, kind: &str, arguments: &[&str]) {
        let ended = self.process(kind, arguments);
        // The cancelling process may have been killed before it signalled the run.
        let may_be_cancelled =
            self.goal == Goal::Cancel && self.started_counts.contains_key("cancel");
        let is_expected = match ended.status.code() {
            Some(0 | 4) => true,
            Some(130) => may_be_cancelled,
            _ => ended.is_killed(),
        };
        assert!(is_expected, "{}", ended.output);
    }

    /// Decides a request.
    fn decide(&mut self, question: &Approval, stored_state: &StoredState) {
        let call = question.call();
        let id = call.to_string();
        let (record, _) = stored_state.of(call).run.call(call).unwrap();
        let tool = record.tool_name().as_str();
        let is_lost = record.state() == CallState::Unknown;
        let decision: &[&str] = match tool {
            // The operator reports whether the effect happened.
            _ if is_lost && stored_state.count(tool) > 0 => &["respond", &id, "It happened"],
            _ if is_lost => &["respond", &id, "It did not happen"],
            "pay" => &["approve", &id, "--yes", "--edit", EDITED],
            "wire" => &["approve", &id, "--yes"],
            "fire" => &["reject", &id, "--message", "never"],
            "ask_human" => &["respond", &id, ANSWER],
            other => panic!("unexpected request about `{other}`"),
        };
        let kind = match is_lost {
            true => format!("tell {tool}"),
            false => format!("decide {tool}"),
        };
        let ended = self.process(&kind, &[&["approvals"], decision].concat());
        let is_taken = ended.status.success() || ended.is_killed();
        assert!(is_taken, "{}", ended.output);
        if ended.status.success() {
            let stored_state = self.stored_state();
            let mut settled = stored_state.approvals.iter();
            let is_settled = settled.any(|settled| {
                settled.request() == question.request()
                    && settled.status() != ApprovalStatus::Pending
            });
            assert!(is_settled, "a decision that was confirmed is not there");
        }
    }

    fn cancel(&mut self, run: &str) {
        let ended = self.process("cancel", &["runs", "cancel", run]);
        let is_expected = ended.status.success() || ended.is_killed();
        assert!(is_expected, "{}", ended.output);
    }

    /// Undoes the held call, even while a process waits with it.
    fn undo(&mut self, call: &str) {
        // A killed process may have undone it.
        let mut may_be_done = false;
        loop {
            let ended = self.process("undo", &["holds", "undo", call]);
            if !ended.is_killed() {
                let is_too_late = ended.status.code() == Some(8);
                let is_done = ended.status.success() || (may_be_done && is_too_late);
                assert!(is_done, "{}", ended.output);
                return;
            }
            may_be_done = true;
        }
    }

    /// Runs the program, which may be killed. Undoes the held call while the program waits with it.
    fn process(&mut self, kind: &str, arguments: &[&str]) -> ProcessResult {
        let number = self.started_counts.entry(kind.to_owned()).or_default();
        *number += 1;
        let process = format!("{kind} {number}");
        let mut command = self.project.command(arguments);
        match &self.crash_plan {
            CrashPlan::Listed => {
                let list = self.project.path(&format!("points {process}"));
                command.env("WINDLASS_CRASH_LIST", list);
            }
            CrashPlan::At(point) if point.process == process => {
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
        let mut output = format!("{process}: {arguments:?}\n");
        loop {
            let line = match self.time_left() {
                Some(left) => lines.recv_timeout(left),
                None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match line {
                Ok(line) => {
                    output += &line;
                    output.push('\n');
                    if let Some((_, call)) = line.split_once("windlass holds undo ")
                        && call.ends_with(UNDONE)
                    {
                        self.undo(call);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    // It may just have ended.
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
        output += &format!("{status}\n");
        self.log.push(output.clone());
        let ended = ProcessResult { status, output };
        if ended.is_killed() {
            self.since = Instant::now();
            // The undo runs while another process is alive, whose calls are checked later.
            let in_flight = match kind {
                "undo" => Vec::new(),
                _ => self.stored_state().in_flight(),
            };
            self.deaths.push(Death { process, in_flight });
        }
        ended
    }

    /// Reads the stored state. No process runs meanwhile, so this time does not count.
    fn stored_state(&mut self) -> StoredState {
        let started = Instant::now();
        let stored_state = StoredState::at(&self.project);
        self.since += started.elapsed();
        stored_state
    }

    /// How long processes have run since the last kill, or in total.
    pub(super) fn worked(&self) -> Duration {
        self.since.elapsed()
    }

    /// The time until the next kill.
    fn time_left(&self) -> Option<Duration> {
        match &self.crash_plan {
            CrashPlan::After(times) => {
                let time = times.first()?;
                Some(time.saturating_sub(self.worked()))
            }
            _ => None,
        }
    }

    fn forget_time(&mut self) {
        if let CrashPlan::After(times) = &mut self.crash_plan {
            times.remove(0);
        }
    }

    /// The passed crash points, in order for each process.
    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for (kind, count) in &self.started_counts {
            for number in 1..=*count {
                let process = format!("{kind} {number}");
                let passed = self.project.read(&format!("points {process}"));
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
