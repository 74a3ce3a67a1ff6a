//! Agent files: any text is read without a panic, and a valid one keeps its meaning when it is formatted.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let tree = windlass_gram::parse(text);
    if let Some(formatted) = windlass_gram::format(&tree) {
        let again = windlass_gram::parse(&formatted);
        assert_eq!(
            windlass_gram::format(&again).as_deref(),
            Some(formatted.as_str())
        );
        let (before, after) = (windlass_spec::read(text), windlass_spec::read(&formatted));
        assert_eq!(before.file.is_some(), after.file.is_some());
    }
    if let Some(file) = windlass_spec::read(text).file {
        let written = windlass_spec::write(&file).expect("a file that was read can be written");
        assert_eq!(windlass_spec::read(&written).file.as_ref(), Some(&file));
    }
});
