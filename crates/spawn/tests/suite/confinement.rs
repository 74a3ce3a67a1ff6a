//! What a program declares is all that it gets: files under Landlock, and no network if it is offline.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use windlass_spawn::{Hiding, Support};
use windlass_spec::ProgramAccess;

use super::{Place, as_everyone};

fn of_files(files: &[PathBuf], writable: &[PathBuf]) -> ProgramAccess {
    ProgramAccess {
        files: Some(files.to_vec()),
        writable_files: writable.to_vec(),
        is_offline: false,
    }
}

#[test]
fn a_program_opens_its_declared_files_and_no_others() {
    as_everyone(
        "confinement::a_program_opens_its_declared_files_and_no_others",
        || {
            if !Support::of_kernel().restricts_files() {
                return;
            }
            let place = Place::with_files();
            for name in ["read", "written"] {
                std::fs::create_dir(place.path(name)).unwrap();
                std::fs::write(place.path(&format!("{name}/file")), name).unwrap();
            }
            let access = of_files(&[place.path("read")], &[place.path("written")]);
            let printed = place.run(
            &place.isolation(),
            &access,
            "cat $1/read/file && cat $1/written/file && cat part && echo && echo new >$1/written/new && rm $1/written/file \
             && mkdir $1/written/d && mv $1/written/new $1/written/d/new && cat $1/written/d/new && ls / >/dev/null; \
             for path in other/file keys/journal.key data/windlass.db; do cat $1/$path && echo READ $path; done 2>/dev/null; \
             for path in read/file read/new tool/part tool/new other/file other/new new; do \
             (echo x >$1/$path) 2>/dev/null && echo WROTE $path; done; \
             truncate -s 0 $1/other/file 2>/dev/null && echo TRUNCATED; \
             rm -f $1/read/file 2>/dev/null && echo REMOVED; \
             ln -s $1/other/file $1/written/link; cat $1/written/link 2>/dev/null && echo READ link; \
             ln $1/other/file $1/written/hard 2>/dev/null && cat $1/written/hard && echo READ hard; \
             ls $1/other $HOME 2>/dev/null && echo LISTED; true",
        );
            assert!(printed.starts_with("readwrittenPART\nnew\n"), "{printed}");
            for done in [
                "READ",
                "WROTE",
                "TRUNCATED",
                "REMOVED",
                "LISTED",
                "OTHER",
                "SECRET",
            ] {
                assert!(!printed.contains(done), "{printed}");
            }
            assert_eq!(
                std::fs::read_to_string(place.path("other/file")).unwrap(),
                "OTHER"
            );
        },
    );
}

#[test]
fn a_script_with_an_interpreter_starts_without_declared_files() {
    as_everyone(
        "confinement::a_script_with_an_interpreter_starts_without_declared_files",
        || {
            if !Support::of_kernel().restricts_files() {
                return;
            }
            let place = Place::with_files();
            let script = place.path("tool/run");
            std::fs::write(&script, "#!/usr/bin/env sh\ncat part; cat ../other/file\n").unwrap();
            std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
            let mut command = std::process::Command::new(&script);
            command.current_dir(place.path("tool")).env_clear();
            command.env("PATH", "/usr/bin:/bin");
            let access = of_files(&[], &[]);
            place.isolation().confine(&mut command, &access).unwrap();
            let output = command.output().unwrap();
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                "PART",
                "{output:?}"
            );
        },
    );
}

/// Landlock also keeps it from other processes.
#[test]
fn a_confined_program_reads_no_memory_of_others() {
    as_everyone(
        "confinement::a_confined_program_reads_no_memory_of_others",
        || {
            if !Support::of_kernel().restricts_files() {
                return;
            }
            let place = Place::with_files();
            let printed = place.run(
            &place.isolation(),
            &of_files(&[], &[]),
            "for process in $PPID 1; do cat /proc/$process/environ >/dev/null && echo READ; \
             (exec 3</proc/$process/mem) && echo READ; cat /proc/$process/root/etc/hostname && echo READ; done 2>/dev/null; true",
        );
            assert!(!printed.contains("READ"), "{printed}");
        },
    );
}

#[test]
fn an_offline_program_has_only_a_loopback_of_its_own() {
    as_everyone(
        "confinement::an_offline_program_has_only_a_loopback_of_its_own",
        || {
            if !Support::of_kernel().offline {
                return;
            }
            let place = Place::with_files();
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let script = format!(
                "(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo CONNECTED; tail -n +3 /proc/net/dev | cut -d: -f1"
            );
            let offline = ProgramAccess {
                is_offline: true,
                ..ProgramAccess::default()
            };
            let printed = place.run(&place.isolation(), &offline, &script);
            assert!(!printed.contains("CONNECTED"), "{printed}");
            // The interface is up: nothing listens there.
            assert!(printed.contains("Connection refused"), "{printed}");
            assert!(printed.contains("lo\n"), "{printed}");
            assert_eq!(
                printed
                    .lines()
                    .filter(|line| !line.contains("bash"))
                    .filter(|line| !line.contains("sh:"))
                    .count(),
                1,
                "{printed}"
            );
            let printed = place.run(&place.isolation(), &ProgramAccess::default(), &script);
            assert!(printed.contains("CONNECTED"), "{printed}");
        },
    );
}

#[test]
fn this_system_is_described() {
    let support = Support::of_kernel();
    assert_eq!(support, Support::of_kernel());
    if support.hiding == Hiding::Impossible {
        assert!(!support.offline);
    }
}
