use std::collections::BTreeMap;
use std::sync::Barrier;

use super::*;

fn settings() -> ServerSettings {
    let command = CommandTransport {
        program: "clock".to_owned(),
        arguments: Vec::new(),
        directory: None,
        environment: BTreeMap::default(),
        parts: Vec::new(),
    };
    let name = ServerName::new("time").unwrap();
    ServerSettings::new(name, Transport::Command(command))
}

fn program(digest: &str) -> Program {
    let path = PathBuf::from("/bin/clock");
    Program {
        executable: path.clone(),
        files: vec![(path, digest.to_owned())],
        digest: digest.to_owned(),
    }
}

fn greeting() -> Greeting {
    Greeting {
        era: Era::Legacy,
        protocol_version: "2025-11-25".to_owned(),
        server_name: "time".to_owned(),
        server_version: "1".to_owned(),
        instructions: None,
    }
}

/// Two processes were told that nobody knows the server, and each has started what it found there.
#[test]
fn of_two_who_meet_a_server_at_once_only_one_says_what_it_runs() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(directory.path().join("windlass.db")).unwrap());
        let ledger = Ledger::new(store, "local");
        let both_are_there = Barrier::new(2);
        let meet = |program: &Program| {
            both_are_there.wait();
            ledger.meet(&settings(), &greeting(), Some(program), &[])
        };
        let (one, other) = (program("11"), program("22"));
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| meet(&one));
            let second = meet(&other);
            (first.join().unwrap(), second)
        });
        let met = [(&one, first), (&other, second)];
        let known = ledger.server(&settings().name).unwrap().unwrap();
        let known: Program = serde_json::from_value(known.program.unwrap()).unwrap();
        for (program, came) in met {
            assert_eq!(came.is_ok(), *program == known, "{came:?}");
            if let Err(error) = came {
                assert!(error.why.contains("started as something else"), "{error}");
            }
        }
    }
}
