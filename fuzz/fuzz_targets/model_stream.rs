//! Streams of model servers, in each protocol. The first byte is the size of the pieces in which they arrive.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((&size, bytes)) = bytes.split_first() {
        windlass_model::fuzzing::read_stream(bytes, usize::from(size) + 1);
    }
});
