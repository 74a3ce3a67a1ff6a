//! Library files: any text gives tools or messages.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use windlass_tools::ToolLibrary;

fuzz_target!(|text: &str| {
    match ToolLibrary::from_toml(text, Path::new("/project")) {
        Ok(library) => {
            for tool in &library {
                let _ = tool.specification();
            }
        }
        Err(errors) => assert!(!errors.is_empty()),
    }
});
