//! Signatures of tools: a text that can be read is written as a text with the same meaning, and JSON Schemas of
//! servers are converted without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use windlass_spec::Signature;

fuzz_target!(|text: &str| {
    if let Ok(signature) = Signature::parse(text) {
        assert_eq!(
            Signature::parse(&signature.to_string()).as_ref(),
            Ok(&signature)
        );
    }
    if let Ok(schema) = serde_json::from_str::<Value>(text) {
        let _ = Signature::from_schemas(&schema, &schema);
        let _ = Signature::from_schemas_approximately(&schema, Some(&schema));
    }
});
