//! What happens in a new process before its program starts, and the only unsafe code of Windlass.
//!
//! After `fork`, another thread may have held any lock, such as that of the allocator. So [`Setup::enter`] makes system
//! calls and nothing else: all that needs memory was prepared before. A step that fails ends the process, and the program
//! is not started.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The namespaces in which a program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Namespaces {
    /// Those of this process.
    Inherited,
    /// A mount namespace, by the capabilities of this process.
    Own,
    /// A mount namespace in a user namespace, with these mappings of the user and the group.
    User {
        /// The content of `uid_map`.
        users: Vec<u8>,
        /// The content of `gid_map`.
        groups: Vec<u8>,
    },
}

/// Something that is covered in the mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cover {
    /// A directory, by an empty one that cannot be written.
    Directory(CString),
    /// A file, by an empty one.
    File(CString),
    /// A file or directory, by itself so that it cannot be written.
    ReadOnly(CString),
    /// The terminals of all users.
    Terminals,
}

/// All that is set up for a program.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) namespaces: Namespaces,
    pub(crate) covers: Vec<Cover>,
    /// Whether the program gets a network namespace.
    pub(crate) is_offline: bool,
    /// The working directory, which is entered again when everything is covered.
    pub(crate) directory: CString,
    /// Whether privileges are kept, such as those of a program with a setuid bit.
    pub(crate) keeps_privileges: bool,
    pub(crate) ruleset: Option<OwnedFd>,
}

/// Capabilities by which root could look below what is covered or into other processes.
#[cfg(target_os = "linux")]
const DROPPED_CAPABILITIES: [libc::c_ulong; 14] = [
    2,  // CAP_DAC_READ_SEARCH: opens files by their handle
    16, // CAP_SYS_MODULE
    17, // CAP_SYS_RAWIO
    19, // CAP_SYS_PTRACE
    21, // CAP_SYS_ADMIN: unmounts
    22, // CAP_SYS_BOOT
    26, // CAP_SYS_TTY_CONFIG
    27, // CAP_MKNOD: opens any device
    32, // CAP_MAC_OVERRIDE
    33, // CAP_MAC_ADMIN
    34, // CAP_SYSLOG
    38, // CAP_PERFMON
    39, // CAP_BPF
    40, // CAP_CHECKPOINT_RESTORE
];

/// Lets a command start its program in the setup.
pub(crate) fn install(command: &mut Command, setup: Setup) {
    // SAFETY: `enter` is safe after `fork`: it only makes system calls with memory that was prepared before.
    unsafe {
        command.pre_exec(move || setup.enter());
    }
}

/// Whether a setup works. No program is started.
#[cfg(target_os = "linux")]
pub(crate) fn is_possible(setup: Setup) -> bool {
    // An error of the last step tells that all before it worked.
    let mut command = Command::new("/proc/self/exe");
    // SAFETY: as in `install`; making an error of a number needs no memory.
    unsafe {
        command.pre_exec(move || {
            setup.enter()?;
            Err(io::Error::from_raw_os_error(libc::ECANCELED))
        });
    }
    let started = command.spawn();
    matches!(started, Err(error) if error.raw_os_error() == Some(libc::ECANCELED))
}

/// The version of Landlock that the kernel has; 0 if it has none.
#[cfg(target_os = "linux")]
pub(crate) fn landlock_version() -> u32 {
    let nothing: *const libc::c_void = std::ptr::null();
    // SAFETY: with this flag, the call reads no memory and returns the version.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0usize, 1u32) };
    u32::try_from(version).unwrap_or(0)
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

impl Setup {
    fn enter(&self) -> io::Result<()> {
        // SAFETY: a call without arguments.
        check(unsafe { libc::setsid() })?;
        close_others()?;
        #[cfg(target_os = "linux")]
        self.confine()?;
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn confine(&self) -> io::Result<()> {
        self.enter_namespaces()?;
        if self.namespaces != Namespaces::Inherited {
            for cover in &self.covers {
                cover.mount()?;
            }
            // The directory that the process is in may be one that is covered now.
            // SAFETY: the path ends with a zero byte.
            check(unsafe { libc::chdir(self.directory.as_ptr()) })?;
        }
        if self.is_offline {
            start_loopback()?;
        }
        if !self.keeps_privileges {
            drop_capabilities(self.namespaces != Namespaces::Inherited)?;
        }
        if !self.keeps_privileges || self.ruleset.is_some() {
            // SAFETY: a call with numbers.
            check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        }
        if let Some(ruleset) = &self.ruleset {
            let ruleset = ruleset.as_raw_fd();
            // SAFETY: a call with numbers.
            let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0u32) };
            check(if done == 0 { 0 } else { -1 })?;
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn enter_namespaces(&self) -> io::Result<()> {
        let mut flags = match &self.namespaces {
            Namespaces::Inherited => 0,
            Namespaces::Own => libc::CLONE_NEWNS,
            Namespaces::User { .. } => libc::CLONE_NEWNS | libc::CLONE_NEWUSER,
        };
        if self.is_offline {
            flags |= libc::CLONE_NEWNET;
        }
        if flags == 0 {
            return Ok(());
        }
        // SAFETY: a call with a number.
        check(unsafe { libc::unshare(flags) })?;
        if let Namespaces::User { users, groups } = &self.namespaces {
            // The memory of Windlass is protected, and with it its files in `/proc`. This process no longer needs that:
            // no program in another user namespace can read its memory.
            // SAFETY: a call with numbers.
            check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) })?;
            write(c"/proc/self/setgroups", b"deny")?;
            write(c"/proc/self/uid_map", users)?;
            write(c"/proc/self/gid_map", groups)?;
        }
        if self.namespaces != Namespaces::Inherited {
            // What is mounted here is not mounted elsewhere.
            mount(c"none", c"/", None, libc::MS_REC | libc::MS_SLAVE, None)?;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
impl Cover {
    fn mount(&self) -> io::Result<()> {
        const PLAIN: libc::c_ulong = libc::MS_NOSUID | libc::MS_NOEXEC;
        match self {
            Self::Directory(path) => {
                let flags = PLAIN | libc::MS_NODEV | libc::MS_RDONLY;
                mount(
                    c"tmpfs",
                    path,
                    Some(c"tmpfs"),
                    flags,
                    Some(c"size=4k,mode=0555"),
                )
            }
            Self::File(path) => mount(c"/dev/null", path, None, libc::MS_BIND, None),
            Self::ReadOnly(path) => {
                mount(path, path, None, libc::MS_BIND, None)?;
                make_read_only(path)
            }
            Self::Terminals => {
                let options = c"newinstance,ptmxmode=0666,mode=0620";
                mount(
                    c"devpts",
                    c"/dev/pts",
                    Some(c"devpts"),
                    PLAIN,
                    Some(options),
                )
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn mount(
    source: &CStr,
    target: &CStr,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all texts end with a zero byte and live longer than the call.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            pointer(kind),
            flags,
            pointer(options).cast(),
        )
    })
}

/// Makes a mount read-only. Its other flags stay: in a user namespace they must not be cleared.
#[cfg(target_os = "linux")]
fn make_read_only(target: &CStr) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path ends with a zero byte, and the size is that of the C struct.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            target.as_ptr(),
            0u32,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    check(if done == 0 { 0 } else { -1 })
}

/// Writes a file in one call.
#[cfg(target_os = "linux")]
fn write(path: &CStr, content: &[u8]) -> io::Result<()> {
    // SAFETY: the path ends with a zero byte.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
    check(file)?;
    // SAFETY: the content is as long as it says.
    let written = unsafe { libc::write(file, content.as_ptr().cast(), content.len()) };
    let result = check(if written < 0 { -1 } else { 0 });
    // SAFETY: the file was opened above and is not used any more.
    unsafe { libc::close(file) };
    result
}

/// Marks all file descriptors but the standard streams to be closed when the program starts. Not at once: the caller
/// is told of errors through one of them.
fn close_others() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        const CLOSE_ON_EXEC: libc::c_uint = 4;
        // SAFETY: a call with numbers.
        let done = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3u32,
                libc::c_uint::MAX,
                CLOSE_ON_EXEC,
            )
        };
        if done == 0 {
            return Ok(());
        }
    }
    const MOST: libc::c_int = 65_536;
    for descriptor in 3..MOST {
        // SAFETY: a call with numbers. A descriptor that is not open is an error without an effect.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

/// Starts the loopback interface of a new network namespace.
#[cfg(target_os = "linux")]
fn start_loopback() -> io::Result<()> {
    // SAFETY: a call with numbers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(socket)?;
    // SAFETY: zero is a valid value of each field of this C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is the C struct that this call reads.
    let result = check(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &request) });
    // SAFETY: the socket was opened above and is not used any more.
    unsafe { libc::close(socket) };
    result
}

/// Takes capabilities from the program for good. Without covers to protect, a process that may not do that keeps them.
#[cfg(target_os = "linux")]
fn drop_capabilities(is_needed: bool) -> io::Result<()> {
    for capability in DROPPED_CAPABILITIES {
        // SAFETY: calls with numbers.
        let has = unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) };
        if has != 1 {
            // The kernel does not know it, or it is gone already.
            continue;
        }
        // SAFETY: as above.
        let dropped = check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) });
        match dropped {
            Err(error) if is_needed => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
