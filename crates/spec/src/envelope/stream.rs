//! Frames of a long running call, sent as server-sent events. Sending and receiving bytes is not done
//! here; [`FrameReader`] accepts them as they arrive.

use serde::{Deserialize, Serialize};

/// One frame of a running call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum StreamFrame {
    /// The progress of the call.
    Progress(Progress),
    /// A part of the result.
    Content {
        /// The part.
        content: String,
    },
    /// The last frame.
    Done,
}

/// The progress of a call: the current step and the total number of steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawProgress")]
pub struct Progress {
    content: String,
    step: u32,
    total: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProgress {
    content: String,
    step: u32,
    total: u32,
}

/// A step before the first or after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("step {step} is not one of {total}; `step` counts from 1 to `total`")]
pub struct StepOutOfRange {
    step: u32,
    total: u32,
}

impl Progress {
    /// The progress at `step` of `total` steps, with a description of the current work.
    ///
    /// # Errors
    /// If `step` is below 1 or above `total`.
    pub fn new(content: impl Into<String>, step: u32, total: u32) -> Result<Self, StepOutOfRange> {
        if !(1..=total).contains(&step) {
            return Err(StepOutOfRange { step, total });
        }
        Ok(Self {
            content: content.into(),
            step,
            total,
        })
    }

    /// A description of the current work.
    #[must_use]
    pub fn content(&self) -> &str {
        &self.content
    }

    /// The current step; the first is 1.
    #[must_use]
    pub const fn step(&self) -> u32 {
        self.step
    }

    /// The total number of steps.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.total
    }
}

impl TryFrom<RawProgress> for Progress {
    type Error = StepOutOfRange;

    fn try_from(raw: RawProgress) -> Result<Self, StepOutOfRange> {
        Self::new(raw.content, raw.step, raw.total)
    }
}

impl StreamFrame {
    /// A progress frame.
    ///
    /// # Errors
    /// If `step` is below 1 or above `total`.
    pub fn progress(
        content: impl Into<String>,
        step: u32,
        total: u32,
    ) -> Result<Self, StepOutOfRange> {
        Progress::new(content, step, total).map(Self::Progress)
    }

    /// A part of the result.
    #[must_use]
    pub fn content(content: impl Into<String>) -> Self {
        Self::Content {
            content: content.into(),
        }
    }

    /// The frame as one server-sent event.
    #[must_use]
    pub fn to_sse(&self) -> String {
        // Texts and numbers can always be written. JSON escapes line ends, so it is one line.
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("data: {json}\n\n")
    }
}

/// Why an event is not a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Its data is not the JSON of a frame.
    #[error("the event is not a frame: {0}")]
    NotAFrame(String),
    /// It is too long.
    #[error("the event is longer than {} bytes", FrameReader::MAX_EVENT_BYTES)]
    TooLong,
}

/// All frames of a whole event stream, in order.
#[must_use]
pub fn read_frames(text: &str) -> Vec<Result<StreamFrame, FrameError>> {
    let mut reader = FrameReader::default();
    let mut frames = reader.push(text.as_bytes());
    frames.extend(reader.finish());
    frames
}

/// Reads frames from an event stream as its bytes arrive, in chunks of any size.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The `data` of the event that has not ended yet.
    data: String,
    /// Whether the last byte was a carriage return, whose line feed may still come.
    after_return: bool,
    /// Whether the current event is too long, so that the rest of it is skipped.
    too_long: bool,
}

impl FrameReader {
    /// The largest size of an event in bytes, so that an endless event does not fill the memory.
    pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

    /// Accepts the next bytes and returns the frames they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<StreamFrame, FrameError>> {
        let mut frames = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.end_line(&mut frames),
                _ if self.line.len() + self.data.len() >= Self::MAX_EVENT_BYTES => {
                    self.give_up(&mut frames);
                }
                _ => self.line.push(byte),
            }
        }
        frames
    }

    /// Ends the stream and returns the frames it completes: a last event counts even if
    /// no blank line ends it.
    pub fn finish(mut self) -> Vec<Result<StreamFrame, FrameError>> {
        let mut frames = Vec::new();
        self.end_line(&mut frames);
        self.end_event(&mut frames);
        frames
    }

    fn end_line(&mut self, frames: &mut Vec<Result<StreamFrame, FrameError>>) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            self.end_event(frames);
        } else if !self.too_long
            && let Some(data) = data_of(&line)
        {
            self.data.push_str(data);
            self.data.push('\n');
        }
    }

    /// Reads every frame of the event. Senders that forget the blank line between events put
    /// several into one; each is a whole JSON value, so they can still be separated.
    fn end_event(&mut self, frames: &mut Vec<Result<StreamFrame, FrameError>>) {
        self.too_long = false;
        let data = std::mem::take(&mut self.data);
        let values = serde_json::Deserializer::from_str(&data).into_iter::<StreamFrame>();
        frames.extend(
            values.map(|frame| frame.map_err(|error| FrameError::NotAFrame(error.to_string()))),
        );
    }

    fn give_up(&mut self, frames: &mut Vec<Result<StreamFrame, FrameError>>) {
        if !self.too_long {
            frames.push(Err(FrameError::TooLong));
        }
        self.too_long = true;
        self.data.clear();
        // The rest of the line becomes a comment; an empty line would end the event.
        self.line.clear();
        self.line.push(b':');
    }
}

/// The content of a `data` line; `None` for comments and other fields.
fn data_of(line: &str) -> Option<&str> {
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    let data = line.strip_prefix("data:")?;
    Some(data.strip_prefix(' ').unwrap_or(data))
}
