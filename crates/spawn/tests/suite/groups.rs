//! Programs are the leaders of a group, which ends as a whole.

use std::process::Stdio;
use std::time::{Duration, Instant};

use windlass_spawn::ProcessGroup;
use windlass_spec::ProgramAccess;

use super::{Place, as_everyone, shell};

#[test]
fn a_group_ends_with_everything_that_was_started_in_it() {
    as_everyone(
        "groups::a_group_ends_with_everything_that_was_started_in_it",
        || {
            let place = Place::with_files();
            for is_killed in [false, true] {
                let script = "sleep 60 & sleep 60 & echo started; wait";
                let mut command = shell(script, &place.path("tool"), &place.path(""));
                command.stdout(Stdio::piped());
                place
                    .isolation()
                    .confine(&mut command, &ProgramAccess::default())
                    .unwrap();
                let mut child = command.spawn().unwrap();
                let group = ProcessGroup::of(Some(child.id()));
                let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
                let mut line = String::new();
                std::io::BufRead::read_line(&mut output, &mut line).unwrap();
                assert_eq!(line, "started\n");
                let since = Instant::now();
                match is_killed {
                    true => drop(group),
                    false => group.terminate(),
                }
                // The end of the output is the end of all that hold it.
                std::io::Read::read_to_end(&mut output, &mut Vec::new()).unwrap();
                assert!(!child.wait().unwrap().success());
                assert!(since.elapsed() < Duration::from_secs(20));
            }
        },
    );
}
