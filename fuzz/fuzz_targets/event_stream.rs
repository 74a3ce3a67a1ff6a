//! Event streams of MCP servers over HTTP. The first byte is the size of the pieces in which they arrive.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((&size, bytes)) = bytes.split_first() {
        windlass_mcp::fuzzing::read_events(bytes, usize::from(size) + 1);
    }
});
