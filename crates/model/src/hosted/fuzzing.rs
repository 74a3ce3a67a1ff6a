//! The part that reads the stream of a model server, without a server. Only for fuzz targets.

use std::cell::Cell;

use windlass_core::model::ModelRequest;

use super::draft::Draft;
use super::endpoint::Protocol;
use super::events::EventReader;
use super::limits::AnswerLimits;
use super::names::WireNames;
use super::protocol::{EventError, Progress};
use super::{Form, HostedSettings};

/// All protocols.
const PROTOCOLS: [Protocol; 4] = [
    Protocol::OpenAi,
    Protocol::Responses,
    Protocol::Anthropic,
    Protocol::Gemini,
];

/// Reads a stream that arrives in pieces of this size, in each protocol and form. Panics if what was read depends
/// on the size, or exceeds the limits.
pub fn read_stream(bytes: &[u8], size: usize) {
    let settings = HostedSettings {
        longest_answer: 4096,
        limits: AnswerLimits {
            line_bytes: 2048,
            events: 256,
            calls: 8,
            argument_bytes: 1024,
            ..AnswerLimits::default()
        },
        ..HostedSettings::default()
    };
    for protocol in PROTOCOLS {
        for form in [Form::Native, Form::Structured] {
            let in_pieces = read(protocol, form, &settings, bytes.chunks(size.max(1)));
            let at_once = read(protocol, form, &settings, [bytes].into_iter());
            assert_eq!(in_pieces, at_once, "{protocol:?} {form:?}");
        }
    }
}

/// The answer, if it is complete and can be read.
fn read<'b>(
    protocol: Protocol,
    form: Form,
    settings: &HostedSettings,
    pieces: impl Iterator<Item = &'b [u8]>,
) -> Option<String> {
    let request = ModelRequest {
        messages: Vec::new(),
        tools: Vec::new(),
    };
    let (format, names) = (protocol.format(), WireNames::new(&request));
    let mut ignore = |_| {};
    let mut draft = Draft::new(form, settings, &names, &mut ignore);
    let mut reader = EventReader::new(settings.limits);
    let has_ended = Cell::new(false);
    let mut handle = |data: &[u8]| -> Result<bool, EventError> {
        has_ended.set(format.read_event(data, &mut draft)? == Progress::End);
        Ok(!has_ended.get())
    };
    for piece in pieces {
        reader.read(piece, &mut handle).ok()?;
        if has_ended.get() {
            break;
        }
    }
    if !has_ended.get() {
        reader.end(&mut handle).ok()?;
    }
    let finished = has_ended.get().then(|| draft.finish(&request).ok())??;
    Some(format!("{:?}", finished.answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_does_not_depend_on_how_its_stream_is_cut() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire");
        let mut complete = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            for size in [1, 2, 3, 7, 64, 1000] {
                read_stream(&bytes, size);
            }
            let settings = HostedSettings::default();
            let read = |protocol| read(protocol, Form::Native, &settings, bytes.chunks(5));
            complete += PROTOCOLS.into_iter().filter_map(read).count();
        }
        assert!(complete >= 4, "{complete}");
    }
}
