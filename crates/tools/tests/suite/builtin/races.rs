//! Files while somebody changes the directories under them: a way that is a directory at one moment is
//! a link out of the root at the next.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tempfile::TempDir;
use windlass_core::run::CallEnd;
use windlass_tools::{BoundTool, BuiltinSettings, FileSettings};

use super::super::permits::call;
use super::tool;

/// How often each tool is tried while the swapping goes on.
const TRIES: usize = 1500;

/// A root in which `way` is by turns a directory and a link to a directory outside.
struct Swapping {
    home: TempDir,
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Swapping {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        for (directory, content) in [("root/way", "inside"), ("outside", "secret")] {
            let directory = home.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("file.txt"), content).unwrap();
        }
        let root = home.path().join("root");
        symlink(home.path().join("outside"), root.join("link")).unwrap();
        let (stop, swaps) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicUsize::new(0)),
        );
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&swaps));
        let thread = std::thread::spawn(move || {
            let exchange = || {
                let (way, link) = (root.join("way"), root.join("link"));
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, way, rustix::fs::CWD, link, flags)
            };
            while !stopped.load(Ordering::Relaxed) {
                exchange().unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self {
            home,
            stop,
            swaps,
            thread: Some(thread),
        }
    }

    fn tool(&self, name: &str) -> BoundTool {
        let settings = BuiltinSettings {
            files: Some(FileSettings::new([self.home.path().join("root")]).unwrap()),
            ..BuiltinSettings::default()
        };
        tool(&settings, name)
    }

    /// Stops the swapping, and gives the directory inside and the one outside.
    fn settle(&mut self) -> (PathBuf, PathBuf) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        assert!(self.swaps.load(Ordering::Relaxed) > 100);
        let root = self.home.path().join("root");
        let is_link = |path: &Path| fs::symlink_metadata(path).unwrap().is_symlink();
        let inside = ["way", "link"].map(|name| root.join(name));
        let inside = inside.into_iter().find(|path| !is_link(path)).unwrap();
        (inside, self.home.path().join("outside"))
    }

    /// Calls the tool again and again, and gives every result that was a success.
    async fn try_often(&self, name: &str, arguments: impl Fn(usize) -> Value) -> Vec<Value> {
        let tool = self.tool(name);
        let mut results = Vec::new();
        let mut refusals = 0;
        for number in 0..TRIES {
            match call(&tool, arguments(number)).await {
                CallEnd::Success(value) => results.push(value),
                CallEnd::Error(_) => refusals += 1,
                other => panic!("{other:?}"),
            }
        }
        // Both happened, so the swaps came between.
        assert!(
            !results.is_empty() && refusals > 0,
            "{} {refusals}",
            results.len()
        );
        results
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_swapped_for_a_link_is_never_read_through() {
    let mut swapping = Swapping::new();
    let results = swapping
        .try_often("read_file", |_| json!({"path": "way/file.txt"}))
        .await;
    assert!(results.iter().all(|result| result["text"] == "inside"));
    swapping.settle();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_swapped_for_a_link_is_never_written_through() {
    let mut swapping = Swapping::new();
    swapping
        .try_often(
            "write_file",
            |number| json!({"path": format!("way/new-{number}.txt"), "content": "x"}),
        )
        .await;
    let (inside, outside) = swapping.settle();
    assert!(fs::read_dir(inside).unwrap().count() > 1);
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_swapped_for_a_link_is_never_deleted_through() {
    let mut swapping = Swapping::new();
    let both = [
        swapping.home.path().join("root/way"),
        swapping.home.path().join("outside"),
    ];
    for number in 0..TRIES {
        for directory in &both {
            // Through either name: where it lands, there must be something to delete.
            fs::write(directory.join(format!("{number}.txt")), "x").unwrap();
        }
    }
    let before = fs::read_dir(&both[1]).unwrap().count();
    swapping
        .try_often(
            "delete_file",
            |number| json!({"path": format!("way/{number}.txt")}),
        )
        .await;
    let (_, outside) = swapping.settle();
    assert_eq!(fs::read_dir(outside).unwrap().count(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_always_seen_whole_while_it_is_overwritten() {
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
    for number in 0..200 {
        let content = &contents[number % 2];
        let arguments = json!({"path": "file.txt", "content": content, "mode": "overwrite"});
        assert!(matches!(call(&write, arguments).await, CallEnd::Success(_)));
    }
    stop.store(true, Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);
}
