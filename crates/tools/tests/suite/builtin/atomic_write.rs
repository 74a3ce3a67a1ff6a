//! Tests that readers never see a partly written file.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use windlass_core::run::CallEnd;
use windlass_tools::{BuiltinSettings, FileSettings};

use super::super::permits::call;
use super::tool;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overwriting_a_file_is_atomic_for_readers() {
    let home = tempfile::tempdir().unwrap();
    let settings = BuiltinSettings {
        files: Some(FileSettings::new([home.path()]).unwrap()),
        ..BuiltinSettings::default()
    };
    let contents = ["a".repeat(100_000), "b".repeat(100_000)];
    fs::write(home.path().join("file.txt"), &contents[0]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, file) = (Arc::clone(&stop), home.path().join("file.txt"));
    let known = contents.clone();
    let reader = std::thread::spawn(move || {
        let mut reads = 0;
        while !stopped.load(Ordering::Relaxed) {
            let read = fs::read_to_string(&file).unwrap();
            assert!(known.contains(&read), "{} bytes", read.len());
            reads += 1;
        }
        reads
    });
    let write = tool(&settings, "write_file");
    for number in 0..100 {
        let content = &contents[number % 2];
        let arguments = json!({"path": "file.txt", "content": content, "mode": "overwrite"});
        assert!(matches!(call(&write, arguments).await, CallEnd::Success(_)));
    }
    stop.store(true, Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);
}
