//! Configuration files: any text gives a configuration or messages.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_config::{ConfigSource, Layer, load};

fuzz_target!(|text: &str| {
    let source = |layer| ConfigSource {
        layer,
        name: "windlass.toml".to_owned(),
        directory: "/project".into(),
        text: text.to_owned(),
    };
    if let Err(mistakes) = load(&[source(Layer::Project)], [], &[]) {
        assert!(!mistakes.is_empty());
    }
    let _ = load(
        &[source(Layer::User), source(Layer::Project)],
        [],
        &[text.to_owned()],
    );
});
