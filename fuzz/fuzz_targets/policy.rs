//! Policies: any text gives rules or messages.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_policy::{Policies, named_tools};

fuzz_target!(|text: &str| {
    let _ = named_tools(text);
    if let Err(errors) = Policies::load(text, []) {
        assert!(!errors.is_empty());
        for error in errors {
            assert!(!error.to_string().is_empty());
        }
    }
});
