//! Crash points: named places at which a test can kill the process, as a power cut would, to check what
//! is left. They exist in debug builds only; in a release build they do nothing.
//!
//! `WINDLASS_CRASH_AT=NAME#N` kills the process when it passes the point `NAME` for the `N`th time.
//! `WINDLASS_CRASH_LIST=FILE` appends a line `NAME#N` to the file for every point that is passed, so
//! a test can list the points and then kill the process at each.
//!
//! The store passes `WHAT.before` before a write is queued, and `WHAT.after` when it is committed and
//! no caller knows yet. Points of events end with their kind, as in
//! `append.before.call_started`. Other crates add their own points with [`crash_point!`](crate::crash_point).

/// Passes a crash point, whose name is written as for [`format!`]. The name is formatted only if
/// crash points are switched on.
///
/// ```
/// windlass_store::crash_point!("effect.before");
/// ```
#[macro_export]
macro_rules! crash_point {
    ($($name:tt)+) => {
        $crate::crash::point(|| ::std::format!($($name)+))
    };
}

/// Passes a crash point. Use [`crash_point!`](crate::crash_point).
#[inline]
pub fn point(name: impl FnOnce() -> String) {
    #[cfg(debug_assertions)]
    armed::pass(name);
    #[cfg(not(debug_assertions))]
    drop(name);
}

/// The crash points before and after one write. Empty in a release build.
#[derive(Debug)]
pub(crate) struct CrashPoints {
    /// The name of the write, and the kind of event. `None` if there are no points to pass.
    #[cfg(debug_assertions)]
    names: Option<(&'static str, Option<String>)>,
}

#[cfg_attr(not(debug_assertions), expect(unused_variables))]
impl CrashPoints {
    /// No points, for work that writes nothing.
    pub(crate) fn none() -> Self {
        Self {
            #[cfg(debug_assertions)]
            names: None,
        }
    }

    /// `WHAT.before` and `WHAT.after`.
    pub(crate) fn of(what: &'static str) -> Self {
        Self {
            #[cfg(debug_assertions)]
            names: Some((what, None)),
        }
    }

    /// `append.before.KIND` and `append.after.KIND`.
    pub(crate) fn of_event(payload: &str) -> Self {
        Self {
            #[cfg(debug_assertions)]
            names: Some((
                "append",
                crate::journal::kind(payload).ok().map(str::to_owned),
            )),
        }
    }

    pub(crate) fn before(&self) {
        #[cfg(debug_assertions)]
        self.pass("before");
    }

    pub(crate) fn after(&self) {
        #[cfg(debug_assertions)]
        self.pass("after");
    }

    #[cfg(debug_assertions)]
    fn pass(&self, side: &str) {
        match &self.names {
            None => {}
            Some((what, None)) => point(|| format!("{what}.{side}")),
            Some((what, Some(kind))) => point(|| format!("{what}.{side}.{kind}")),
        }
    }
}

#[cfg(debug_assertions)]
mod armed {
    use std::collections::HashMap;
    use std::fs::{File, OpenOptions};
    use std::io::Write as _;
    use std::process::Command;
    use std::sync::{LazyLock, Mutex, PoisonError};

    /// The crash settings of the environment, if there are any.
    static CRASH: LazyLock<Option<Mutex<CrashSettings>>> =
        LazyLock::new(|| CrashSettings::from_environment().map(Mutex::new));

    struct CrashSettings {
        at: Option<String>,
        list: Option<File>,
        passed: HashMap<String, u64>,
    }

    impl CrashSettings {
        fn from_environment() -> Option<Self> {
            let at = std::env::var("WINDLASS_CRASH_AT").ok();
            let list = std::env::var_os("WINDLASS_CRASH_LIST").and_then(|path| {
                let mut options = OpenOptions::new();
                options.append(true).create(true).open(path).ok()
            });
            (at.is_some() || list.is_some()).then(|| Self {
                at,
                list,
                passed: HashMap::new(),
            })
        }

        fn pass(&mut self, name: String) {
            let count = self.passed.entry(name.clone()).or_default();
            *count += 1;
            let passage = format!("{name}#{count}");
            if let Some(list) = &mut self.list {
                // A single write, because the processes of one test may share the file.
                let _ = list.write_all(format!("{passage}\n").as_bytes());
            }
            if self.at.as_ref() == Some(&passage) {
                die();
            }
        }
    }

    pub(super) fn pass(name: impl FnOnce() -> String) {
        if let Some(crash) = &*CRASH {
            // Locked until the process is dead, so that no other thread passes a point meanwhile.
            let mut crash = crash.lock().unwrap_or_else(PoisonError::into_inner);
            crash.pass(name());
        }
    }

    /// Kills this process. It uses a shell, because sending a signal to itself needs unsafe code.
    fn die() -> ! {
        let kill = format!("kill -KILL {}", std::process::id());
        let is_sent = Command::new("sh").args(["-c", &kill]).status();
        if is_sent.is_ok_and(|status| status.success()) {
            loop {
                std::thread::park();
            }
        }
        std::process::abort()
    }
}
