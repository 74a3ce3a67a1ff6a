//! What no program can reach: keys, data, terminals, the memory and the files of the process that starts it.

use std::fs::File;

use rustix::io::{FdFlags, fcntl_setfd};
use windlass_spawn::{Hiding, Isolation, Support, protect_memory};
use windlass_spec::{IsolationLevel, ProgramAccess};

use super::{Place, as_everyone, rerun};

fn is_hiding_possible() -> bool {
    Support::of_kernel().hiding != Hiding::Impossible
}

fn undeclared() -> ProgramAccess {
    ProgramAccess::default()
}

#[test]
fn keys_and_data_are_covered() {
    as_everyone("reach::keys_and_data_are_covered", || {
        if !is_hiding_possible() {
            return;
        }
        let place = Place::with_files();
        let printed = place.run(
            &place.isolation(),
            &undeclared(),
            "cat $1/keys/* $1/data/*; ls -A $1/keys $1/data; echo forged >$1/data/new; echo forged >$1/keys/approver; \
             cat $1/other/file; pwd; cat part",
        );
        assert!(!printed.contains("SECRET"), "{printed}");
        assert!(!printed.contains("journal.key\n"), "{printed}");
        for read in ["OTHER", "PART", "/tool"] {
            assert!(printed.contains(read), "{read}: {printed}");
        }
        assert!(!place.path("data/new").exists() && !place.path("keys/approver").exists());
        // Nothing is covered for this process.
        assert!(std::fs::read(place.path("keys/journal.key")).is_ok());
    });
}

#[test]
fn a_program_cannot_take_the_covers_away() {
    as_everyone("reach::a_program_cannot_take_the_covers_away", || {
        if !is_hiding_possible() {
            return;
        }
        let place = Place::with_files();
        for attempt in [
            "umount $1/keys; umount -l $1/keys; cat $1/keys/*",
            "unshare -Urm sh -c \"umount $1/keys; umount -l $1/keys; cat $1/keys/*\"",
            "unshare -m sh -c \"umount $1/keys; cat $1/keys/*\"",
            "nsenter -t $PPID -m cat $1/keys/journal.key",
            "nsenter -t $PPID -U -m cat $1/keys/journal.key",
            "cat /proc/$PPID/root$1/keys/journal.key",
            "cat /proc/$PPID/cwd$1/keys/journal.key",
            "cd /proc/1/root$1/keys && cat journal.key",
            "mv $1/keys $1/moved && cat $1/moved/*",
            "ln $1/keys/journal.key $1/tool/link; cat $1/tool/link",
        ] {
            let printed = place.run(&place.isolation(), &undeclared(), attempt);
            assert!(!printed.contains("SECRET"), "{attempt}: {printed}");
        }
    });
}

#[test]
fn a_directory_that_the_program_starts_in_is_covered_too() {
    as_everyone(
        "reach::a_directory_that_the_program_starts_in_is_covered_too",
        || {
            if !is_hiding_possible() {
                return;
            }
            let place = Place::with_files();
            // Of a directory that the program is in, the private files are covered; the key directory is covered whole.
            let read = "cat *; cat ./windlass.db ./journal.key; cd .. && cat */windlass.db";
            for directory in ["keys", "data"] {
                let printed = place.run_in(directory, &place.isolation(), &undeclared(), read);
                assert!(!printed.contains("SECRET"), "{directory}: {printed}");
            }
        },
    );
}

/// Only root can mount.
#[test]
fn other_mounts_of_a_directory_are_covered() {
    let name = "reach::other_mounts_of_a_directory_are_covered";
    let is_again = std::env::var_os("WINDLASS_TEST_MOUNTS").is_some();
    if !rustix::process::geteuid().is_root() || !is_hiding_possible() {
        return;
    }
    if !is_again {
        return rerun(name, &["env", "WINDLASS_TEST_MOUNTS=1", "unshare", "-m"]);
    }
    let place = Place::with_files();
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    std::fs::create_dir(place.path("keys/below")).unwrap();
    std::fs::write(place.path("keys/below/key"), "SECRET").unwrap();
    std::fs::create_dir(place.path("part")).unwrap();
    for (from, to) in [("keys", "elsewhere"), ("keys/below", "part")] {
        let done = std::process::Command::new("mount")
            .arg("--bind")
            .args([place.path(from), place.path(to)])
            .status();
        assert!(done.unwrap().success());
    }
    let read = "cat $1/elsewhere/* $1/elsewhere/below/key $1/part/key $1/keys/* $1/keys/below/key";
    let isolation = place.isolation();
    let printed = place.run(&isolation, &undeclared(), read);
    assert!(!printed.contains("SECRET"), "{printed}");
    let printed = place.run(&Isolation::new(IsolationLevel::Off), &undeclared(), read);
    assert!(printed.contains("SECRET"), "{printed}");
}

#[test]
fn the_memory_of_the_starting_process_cannot_be_read() {
    as_everyone(
        "reach::the_memory_of_the_starting_process_cannot_be_read",
        || {
            protect_memory().unwrap();
            let place = Place::with_files();
            let read = "for file in mem environ maps auxv; do \
                    dd if=/proc/$PPID/$file bs=1 count=1 2>&1 | grep -q '1+0 records in' && echo READ $file; done; \
                    for file in 0 1 2 3 4 5; do readlink /proc/$PPID/fd/$file && echo READ fd; done; \
                    (exec 3<>/proc/$PPID/mem) 2>/dev/null && echo READ writable; \
                    readlink /proc/$PPID/exe && echo READ exe; true";
            let printed = place.run(&place.isolation(), &undeclared(), read);
            assert!(!printed.contains("READ"), "{printed}");
            // Without isolation too, unless the user is root.
            if !rustix::process::geteuid().is_root() {
                let printed = place.run(&Isolation::new(IsolationLevel::Off), &undeclared(), read);
                assert!(!printed.contains("READ"), "{printed}");
            }
        },
    );
}

/// The session is the sixth and the terminal the seventh field of `stat`.
#[test]
fn a_program_has_a_session_of_its_own_and_no_terminal() {
    as_everyone(
        "reach::a_program_has_a_session_of_its_own_and_no_terminal",
        || {
            let place = Place::with_files();
            let printed = place.run(
                &place.isolation(),
                &undeclared(),
                "read -r a b c d e session terminal rest </proc/self/stat; \
             [ $session = $$ ] && echo own; echo terminal $terminal; \
             (echo forged >/dev/tty) 2>/dev/null && echo WROTE; ls /dev/pts",
            );
            assert!(printed.starts_with("own\nterminal 0\n"), "{printed}");
            assert!(!printed.contains("WROTE"), "{printed}");
            if is_hiding_possible() {
                let terminals = printed.lines().skip(2).filter(|line| *line != "ptmx");
                assert_eq!(
                    terminals.collect::<Vec<_>>(),
                    Vec::<&str>::new(),
                    "{printed}"
                );
            }
        },
    );
}

#[test]
fn a_program_can_make_terminals() {
    as_everyone("reach::a_program_can_make_terminals", || {
        let place = Place::with_files();
        let make = "python3 -c 'import pty; print(pty.openpty()[1] > 2)' || echo no python";
        let printed = place.run(&place.isolation(), &undeclared(), make);
        assert!(
            printed.contains("True") || printed.contains("no python"),
            "{printed}"
        );
    });
}

#[test]
fn open_files_are_not_inherited() {
    as_everyone("reach::open_files_are_not_inherited", || {
        let place = Place::with_files();
        let key = File::open(place.path("keys/journal.key")).unwrap();
        fcntl_setfd(&key, FdFlags::empty()).unwrap();
        for level in IsolationLevel::ALL {
            let isolation = Isolation::new(level);
            if level == IsolationLevel::Strict && !is_hiding_possible() {
                continue;
            }
            let read = "for n in 3 4 5 6 7 8 9 10 11 12; do cat <&$n; done 2>/dev/null; true";
            let printed = place.run(&isolation, &undeclared(), read);
            assert_eq!(printed, "", "{level:?}");
        }
    });
}

#[test]
fn a_program_gets_no_new_privileges() {
    as_everyone("reach::a_program_gets_no_new_privileges", || {
        let place = Place::with_files();
        let read = "grep -E 'NoNewPrivs|CapBnd|CapEff' /proc/self/status";
        let printed = place.run(&place.isolation(), &undeclared(), read);
        assert!(printed.contains("NoNewPrivs:\t1"), "{printed}");
        for line in printed.lines().filter(|line| line.starts_with("Cap")) {
            let bits = line.split_whitespace().last().unwrap();
            let bits = u64::from_str_radix(bits, 16).unwrap();
            // CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_MKNOD.
            assert_eq!(bits & (1 << 19 | 1 << 21 | 1 << 27), 0, "{printed}");
        }
        let printed = place.run(&Isolation::new(IsolationLevel::Off), &undeclared(), read);
        assert!(printed.contains("NoNewPrivs:\t0"), "{printed}");
    });
}

#[test]
fn without_isolation_keys_are_in_reach() {
    let place = Place::with_files();
    let isolation = Isolation::new(IsolationLevel::Off).hiding(place.path("keys"));
    let printed = place.run(&isolation, &undeclared(), "cat $1/keys/journal.key");
    assert_eq!(printed, "SECRET");
}

/// Services of the user start programs that are not isolated.
#[test]
fn services_of_the_user_are_covered() {
    as_everyone("reach::services_of_the_user_are_covered", || {
        if !is_hiding_possible() || !std::path::Path::new("/run/user").is_dir() {
            return;
        }
        let place = Place::with_files();
        let printed = place.run(&place.isolation(), &undeclared(), "ls -A /run/user");
        assert_eq!(printed, "");
    });
}

#[test]
fn what_is_kept_cannot_be_written_in_a_directory_that_is_declared_as_writable() {
    as_everyone(
        "reach::what_is_kept_cannot_be_written_in_a_directory_that_is_declared_as_writable",
        || {
            if !is_hiding_possible() || !Support::of_kernel().restricts_files() {
                eprintln!("SKIPPED: this system mounts nothing for a program, or has no Landlock");
                return;
            }
            let place = Place::with_files();
            let access = ProgramAccess {
                writable_files: vec![place.path("tool")],
                ..ProgramAccess::default()
            };
            let isolation = place.isolation().keeping([place.path("tool/part")]);
            let attack = "echo FORGED > part; echo FORGED > new; mv new part; rm -f part; umount part; \
                          echo FORGED > other; cat part other";
            let printed = place.run(&isolation, &access, attack);
            assert_eq!(
                std::fs::read_to_string(place.path("tool/part")).unwrap(),
                "PART"
            );
            assert!(
                printed.contains("PART") && printed.contains("FORGED"),
                "{printed}"
            );
            // Without declared files, a program has the rights of its user.
            let printed = place.run(&isolation, &undeclared(), "echo FORGED > part; cat part");
            assert!(printed.contains("FORGED"), "{printed}");
        },
    );
}
