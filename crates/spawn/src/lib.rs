//! Starts programs so that they reach neither the keys and journals of Windlass nor the terminal of its user.
//!
//! [`Isolation::confine`] prepares a command. The program then runs
//!
//! - in a session of its own, without a control terminal, and with no file descriptors but its standard streams,
//! - without new privileges, and without the capabilities by which root could undo the rest,
//! - in a mount namespace in which keys, data and terminals are covered, if the kernel allows that,
//! - under Landlock if its files are declared, and
//! - in a network namespace with nothing but a loopback interface if it is declared offline.
//!
//! What is declared and cannot be given is an error, unless the installation accepts less.

mod aliases;
mod child;
mod confine;
mod group;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(not(target_os = "linux"))]
#[path = "without_landlock.rs"]
mod landlock;
mod program;
mod support;

pub use confine::{ConfinementError, Isolation};
pub use group::ProcessGroup;
pub use support::{Hiding, Support};

/// Keeps other processes of the user from reading the memory and the environment of this process, and the kernel from
/// writing them to a core dump.
///
/// # Errors
/// If the kernel refuses.
pub fn protect_memory() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}
