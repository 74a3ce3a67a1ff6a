//! Splits a stream into its events: server-sent events, or lines of JSON. The data of an event is collected
//! in one buffer, which all events of a stream share.

use memchr::memchr2;

use super::limits::{AnswerLimits, ExceededLimit};

/// Reads one stream.
pub(super) struct EventReader {
    limits: AnswerLimits,
    /// The start of a line that continues in the next piece.
    line: Vec<u8>,
    /// The data of an event whose end has not arrived.
    data: Vec<u8>,
    has_data: bool,
    /// Whether a line feed at the start of the next piece belongs to the line before.
    skips_line_feed: bool,
    bytes: usize,
    events: usize,
}

impl EventReader {
    pub(super) fn new(limits: AnswerLimits) -> Self {
        Self {
            limits,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            skips_line_feed: false,
            bytes: 0,
            events: 0,
        }
    }

    /// Whether there was an event or a comment.
    pub(super) fn has_events(&self) -> bool {
        self.events > 0
    }

    /// Reads a piece of the stream and calls `handle` with the data of each event that it completes, until
    /// that returns false.
    pub(super) fn read<E: From<ExceededLimit>>(
        &mut self,
        piece: &[u8],
        handle: &mut dyn FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > self.limits.stream_bytes {
            return Err(ExceededLimit::StreamBytes(self.limits.stream_bytes).into());
        }
        let mut rest = piece;
        loop {
            if self.skips_line_feed && !rest.is_empty() {
                self.skips_line_feed = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.check_line(self.line.len() + rest.len())?;
                self.line.extend_from_slice(rest);
                return Ok(());
            };
            self.check_line(self.line.len() + end)?;
            let line = &rest[..end];
            self.skips_line_feed = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let goes_on = if self.line.is_empty() {
                self.end_line(line, handle)?
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                let goes_on = self.end_line(&whole, handle)?;
                whole.clear();
                self.line = whole;
                goes_on
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Reads what is left at the end of the stream: some servers omit the last line break.
    pub(super) fn end<E: From<ExceededLimit>>(
        &mut self,
        handle: &mut dyn FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<(), E> {
        let line = std::mem::take(&mut self.line);
        if self.end_line(&line, handle)? {
            self.end_line(b"", handle)?;
        }
        Ok(())
    }

    /// Returns whether the reader goes on.
    fn end_line<E: From<ExceededLimit>>(
        &mut self,
        line: &[u8],
        handle: &mut dyn FnMut(&[u8]) -> Result<bool, E>,
    ) -> Result<bool, E> {
        match line.first() {
            None if self.has_data => {
                self.has_data = false;
                self.count()?;
                let data = std::mem::take(&mut self.data);
                let goes_on = handle(&data)?;
                self.data = data;
                self.data.clear();
                Ok(goes_on)
            }
            None => Ok(true),
            // A line of JSON is an event by itself: some servers send their errors so.
            Some(b'{') => {
                self.count()?;
                handle(line)
            }
            Some(_) => {
                if let Some(data) = line.strip_prefix(b"data:") {
                    let data = data.strip_prefix(b" ").unwrap_or(data);
                    if self.has_data {
                        self.data.push(b'\n');
                    }
                    self.check_line(self.data.len() + data.len())?;
                    self.has_data = true;
                    self.data.extend_from_slice(data);
                } else if line[0] == b':' {
                    self.count()?;
                }
                Ok(true)
            }
        }
    }

    fn check_line(&self, length: usize) -> Result<(), ExceededLimit> {
        match length > self.limits.line_bytes {
            true => Err(ExceededLimit::LineBytes(self.limits.line_bytes)),
            false => Ok(()),
        }
    }

    fn count(&mut self) -> Result<(), ExceededLimit> {
        self.events += 1;
        match self.events > self.limits.events {
            true => Err(ExceededLimit::Events(self.limits.events)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = EventReader::new(AnswerLimits::default());
        let mut found = Vec::new();
        let mut handle = |data: &[u8]| {
            found.push(String::from_utf8_lossy(data).into_owned());
            Ok::<bool, ExceededLimit>(true)
        };
        for piece in pieces {
            reader.read(piece, &mut handle).unwrap();
        }
        reader.end(&mut handle).unwrap();
        found
    }

    #[test]
    fn fields_comments_and_line_ends_are_told_apart() {
        let stream =
            b": hello\n\nevent: x\r\nid: 7\r\ndata: one\r\n\r\ndata:two\rdata: three\r\r\n\
                       {\"error\": 1}\ndata\n\ndata: \n\ndata: last";
        assert_eq!(
            events(&[stream]),
            ["one", "two\nthree", "{\"error\": 1}", "", "last"]
        );
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_how_the_stream_is_cut(
            stream in "(data: ?|event: x|: c|[a-c{ ]|\r\n|\n|\r){0,40}",
            cuts in proptest::collection::vec(0_usize..200, 0..12),
        ) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut start = 0;
            let pieces: Vec<&[u8]> = cuts
                .iter()
                .map(|cut| {
                    let piece = &bytes[start..*cut];
                    start = *cut;
                    piece
                })
                .collect();
            prop_assert_eq!(events(&pieces), events(&[bytes]));
        }
    }
}
