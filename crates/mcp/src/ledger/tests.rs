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
        access: Default::default(),
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

fn server_info() -> ServerInfo {
    ServerInfo {
        era: Era::Legacy,
        protocol_version: "2025-11-25".to_owned(),
        server_name: "time".to_owned(),
        server_version: "1".to_owned(),
        instructions: None,
    }
}

/// Two processes make the first connection to a server at the same time, each with another program.
#[test]
fn concurrent_first_connections_accept_only_one_program() {
    for _ in 0..20 {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(directory.path().join("windlass.db")).unwrap());
        let ledger = Ledger::new(store, "local");
        let start = Barrier::new(2);
        let connect = |program: &Program| {
            start.wait();
            ledger.record_connection(&settings(), &server_info(), Some(program), &[])
        };
        let (one, other) = (program("11"), program("22"));
        let (first, second) = std::thread::scope(|scope| {
            let first = scope.spawn(|| connect(&one));
            let second = connect(&other);
            (first.join().unwrap(), second)
        });
        let results = [(&one, first), (&other, second)];
        let known = ledger.server(&settings().name).unwrap().unwrap();
        let known: Program = serde_json::from_value(known.program.unwrap()).unwrap();
        for (program, result) in results {
            assert_eq!(result.is_ok(), *program == known, "{result:?}");
            if let Err(error) = result {
                assert!(
                    error.reason.contains("is not the one that was accepted"),
                    "{error}"
                );
            }
        }
    }
}
