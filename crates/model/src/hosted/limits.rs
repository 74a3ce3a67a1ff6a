//! The limits of an answer. A server that exceeds one is disconnected at once, so that no server can fill
//! memory or keep a run busy.

/// The nesting that `serde_json` reads.
pub(super) const MOST_LEVELS: usize = 128;

/// The limits of what a server may send for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLimits {
    /// The most bytes of a stream, including all that surrounds the answer.
    pub stream_bytes: usize,
    /// The most bytes of one line or event.
    pub line_bytes: usize,
    /// The most events, including comments.
    pub events: usize,
    /// The most bytes that are read of an error.
    pub error_bytes: usize,
    /// The most calls of an answer.
    pub calls: usize,
    /// The most bytes of the arguments of a call.
    pub argument_bytes: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            // A token of four letters is sent in an event of about three hundred bytes.
            stream_bytes: 64 * 1024 * 1024,
            // Some servers repeat the instructions and tools of the request in one event.
            line_bytes: 4 * 1024 * 1024,
            events: 512 * 1024,
            error_bytes: 64 * 1024,
            calls: 128,
            argument_bytes: 256 * 1024,
        }
    }
}

/// The limit that an answer exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExceededLimit {
    /// Text, reasoning and arguments together.
    #[error("The answer was stopped: it is longer than {0} bytes. Ask for less at once.")]
    AnswerBytes(usize),
    /// The number of calls.
    #[error(
        "The answer was stopped: it requests more than {0} calls. Ask for fewer steps at once."
    )]
    Calls(usize),
    /// The arguments of one call.
    #[error(
        "The answer was stopped: the arguments of a call are longer than {0} bytes. Ask for the content in parts."
    )]
    ArgumentBytes(usize),
    /// The nesting of JSON.
    #[error(
        "The answer was stopped: its JSON is nested deeper than {0} levels. Ask for flatter arguments."
    )]
    Depth(usize),
    /// The whole stream.
    #[error(
        "The answer was stopped: its stream is longer than {0} bytes. Check that the address is that of a model server."
    )]
    StreamBytes(usize),
    /// One line or event of the stream.
    #[error(
        "The answer was stopped: a line of its stream is longer than {0} bytes. Check that the address is that of a model server."
    )]
    LineBytes(usize),
    /// The number of events.
    #[error(
        "The answer was stopped: its stream has more than {0} events. Check that the address is that of a model server."
    )]
    Events(usize),
    /// The headers. Their limit is that of the HTTP library.
    #[error(
        "The answer was stopped: its headers are too long or too many. Check that the address is that of a model server."
    )]
    Headers,
    /// The body of an error, of which the rest was not read.
    #[error("The error is longer than {0} bytes; the rest was not read.")]
    ErrorBytes(usize),
    /// A compressed body, whose real size is not known before it is read.
    #[error(
        "The answer was refused: it is compressed, which was not requested. Turn compression off at the server or proxy."
    )]
    Compressed,
}
