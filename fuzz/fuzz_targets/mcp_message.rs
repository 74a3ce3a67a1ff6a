//! Messages of MCP servers: lines of a program, definitions of tools, and elicitations.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| windlass_mcp::fuzzing::read_message(line));
