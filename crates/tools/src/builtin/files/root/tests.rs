//! Tests of file access while another thread swaps directories and files for links that lead out of the root.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::super::path::{PathTarget, Steps};
use super::{FileProblem, Reached, WriteMode, delete, list, read, write};

/// A check that allows everything.
fn allow(_: &Reached<'_>) -> Result<(), FileProblem> {
    Ok(())
}

fn steps(path: &str) -> Steps {
    match PathTarget::parse(path, &["root"]).unwrap() {
        PathTarget::InRoot { steps, .. } => steps,
        PathTarget::Roots => panic!("{path}"),
    }
}

/// A root in which a thread repeatedly swaps `way` and `other`.
struct SwappingRoot {
    home: TempDir,
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl SwappingRoot {
    /// `prepare` gets the root and a directory outside.
    fn new(prepare: impl FnOnce(&Path, &Path)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (root, outside) = (home.path().join("root"), home.path().join("outside"));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        prepare(&root, &outside);
        let (stop, swaps) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&swaps));
        let thread = std::thread::spawn(move || {
            let [way, other, aside] = ["way", "other", "aside"].map(|name| root.join(name));
            while !stopped.load(Ordering::Relaxed) {
                // Each is missing for a moment, so that this case is tested as well.
                fs::rename(&way, &aside).unwrap();
                fs::rename(&other, &way).unwrap();
                std::thread::yield_now();
                fs::rename(&way, &other).unwrap();
                fs::rename(&aside, &way).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        Self {
            home,
            stop,
            swaps,
            thread: Some(thread),
        }
    }

    /// Directories with the files `0.txt` to that number, one inside and, by a link, one outside.
    fn directories(files: usize) -> Self {
        Self::new(|root, outside| {
            fs::create_dir(root.join("way")).unwrap();
            symlink(outside, root.join("other")).unwrap();
            for number in 0..files {
                let name = format!("{number}.txt");
                fs::write(root.join("way").join(&name), "inside").unwrap();
                fs::write(outside.join(&name), "secret").unwrap();
            }
        })
    }

    /// Repeats the attempt until it succeeded, failed with `obstacle`, and the two were swapped, each `often` times.
    fn until_both<T>(
        &self,
        often: usize,
        obstacle: &FileProblem,
        mut attempt: impl FnMut(usize, &Path) -> Result<T, FileProblem>,
    ) -> Vec<T> {
        const ENOUGH: Duration = Duration::from_secs(60);
        let begun = Instant::now();
        let root = self.home.path().join("root");
        let (mut successes, mut obstacles) = (Vec::new(), 0);
        for number in 0.. {
            match attempt(number, &root) {
                Ok(value) => successes.push(value),
                Err(problem) if problem == *obstacle => obstacles += 1,
                // Missing during a swap, or checked after it was swapped back.
                Err(FileProblem::Missing(_) | FileProblem::NotDirectory(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
            let swaps = self.swaps.load(Ordering::Relaxed);
            if successes.len() >= often && obstacles >= often && swaps >= often {
                break;
            }
            let counts = (successes.len(), obstacles, swaps);
            assert!(
                begun.elapsed() < ENOUGH,
                "succeeded, refused, swapped: {counts:?}"
            );
        }
        successes
    }

    /// Stops the swapping, and returns the directory outside.
    fn stop_swapping(&mut self) -> PathBuf {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        self.home.path().join("outside")
    }
}

impl Drop for SwappingRoot {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn link() -> FileProblem {
    FileProblem::Link("way".to_owned())
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_directory_swapped_for_a_link_is_never_read_through() {
    let swapping = SwappingRoot::directories(1);
    let read = swapping.until_both(1000, &link(), |_, root| {
        read(root, &steps("way/0.txt"), 100, &allow)
    });
    assert!(read.iter().all(|content| content == b"inside"));
}

#[test]
fn a_directory_swapped_for_a_link_is_never_listed_through() {
    let swapping = SwappingRoot::directories(1);
    fs::write(swapping.home.path().join("outside/secret.txt"), "").unwrap();
    let listed = swapping.until_both(200, &link(), |_, root| list(root, &steps("way"), 100));
    assert!(listed.iter().all(|entries| entries.len() == 1));
}

#[test]
fn a_directory_swapped_for_a_link_is_never_written_through() {
    let mut swapping = SwappingRoot::directories(0);
    swapping.until_both(50, &link(), |number, root| {
        let steps = steps(&format!("way/{number}.txt"));
        write(root, &steps, b"new", WriteMode::Create, &allow, &|| Ok(()))
    });
    assert_eq!(count(&swapping.stop_swapping()), 0);
}

#[test]
fn a_directory_swapped_for_a_link_is_never_deleted_through() {
    const FILES: usize = 2000;
    let mut swapping = SwappingRoot::directories(FILES);
    swapping.until_both(200, &link(), |number, root| {
        let name = format!("{}.txt", number % FILES);
        delete(root, &steps(&format!("way/{name}")), &allow)
    });
    assert_eq!(count(&swapping.stop_swapping()), FILES);
}

#[test]
fn a_file_swapped_for_a_link_is_never_read_through() {
    let swapping = SwappingRoot::new(|root, outside| {
        fs::write(root.join("way"), "inside").unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        symlink(outside.join("secret"), root.join("other")).unwrap();
    });
    let read = swapping.until_both(1000, &link(), |_, root| {
        read(root, &steps("way"), 100, &allow)
    });
    assert!(read.iter().all(|content| content == b"inside"));
}

#[test]
fn a_file_swapped_for_a_pipe_never_blocks() {
    let swapping = SwappingRoot::new(|root, _| {
        fs::write(root.join("way"), "inside").unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("other"), 0o600.into()).unwrap();
    });
    let (sender, done) = std::sync::mpsc::channel();
    // A read that blocks never returns, so it runs in a thread that is not joined.
    std::thread::spawn(move || {
        let special = FileProblem::Special;
        let read = swapping.until_both(2000, &special, |_, root| {
            read(root, &steps("way"), 100, &allow)
        });
        let _ = sender.send(read);
    });
    let read = done.recv_timeout(Duration::from_secs(90)).unwrap();
    assert!(read.iter().all(|content| content == b"inside"));
}
