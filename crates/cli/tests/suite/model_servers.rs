//! Model servers that never finish: `--timeout` and `runs cancel` hold against each of them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::program::{TestProject, example};

/// Far longer than a run may take after its time limit or its cancellation.
const TOO_LONG: Duration = Duration::from_secs(60);

const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// What a server sends: once, and then again and again, with a pause after each.
struct Endless {
    first: &'static str,
    then: &'static str,
    pause: Duration,
}

const SERVERS: [Endless; 6] = [
    // A line without an end. It is slow enough for no limit of its length to end it.
    Endless {
        first: STREAM,
        then: "x",
        pause: Duration::from_millis(20),
    },
    Endless {
        first: STREAM,
        then: ": still here\n\n",
        pause: Duration::from_millis(1),
    },
    Endless {
        first: STREAM,
        then: "data: {\"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\n",
        pause: Duration::from_millis(20),
    },
    // Headers without an end, and none at all.
    Endless {
        first: "HTTP/1.1 200 OK\r\n",
        then: "a: b\r\n",
        pause: Duration::from_millis(200),
    },
    Endless {
        first: "",
        then: "",
        pause: Duration::from_millis(20),
    },
    // An error without an end.
    Endless {
        first: "HTTP/1.1 500 No\r\nconnection: close\r\n\r\n",
        then: "x",
        pause: Duration::from_millis(20),
    },
];

/// Starts a server. Returns its address, and receives a message for each request.
fn serve(endless: &'static Endless) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (requested, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let requested = requested.clone();
            std::thread::spawn(move || {
                let _ = send(stream, endless, || {
                    let _ = requested.send(());
                });
            });
        }
    });
    (url, requests)
}

fn send(mut stream: TcpStream, endless: &Endless, begun: impl Fn()) -> std::io::Result<()> {
    let mut buffer = [0; 1024];
    if stream.read(&mut buffer)? == 0 {
        return Ok(());
    }
    stream.write_all(endless.first.as_bytes())?;
    begun();
    loop {
        stream.write_all(endless.then.as_bytes())?;
        std::thread::sleep(endless.pause);
    }
}

/// The options of a run whose model is at this address.
fn options(url: &str) -> [&str; 6] {
    [
        "--library",
        "hello",
        "--model",
        "my-lab/m",
        "--base-url",
        url,
    ]
}

#[test]
fn the_time_limit_of_a_run_holds_against_every_server() {
    let project = TestProject::new().with("hello.gram", example("hello.gram"));
    for server in &SERVERS {
        let (url, _requests) = serve(server);
        let started = Instant::now();
        let output = project
            .command(&["run", "hello.gram", "Say hello to Ada", "--timeout", "1"])
            .args(options(&url))
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(started.elapsed() < TOO_LONG, "{printed}");
        assert!(!output.status.success(), "{printed}");
        assert!(printed.contains("time"), "{:?}: {printed}", server.then);
    }
}

#[test]
fn a_cancellation_reaches_a_run_at_every_server() {
    for server in &SERVERS {
        let project = TestProject::new().with("hello.gram", example("hello.gram"));
        let (url, requests) = serve(server);
        let mut run = project
            .command(&["run", "hello.gram", "Say hello to Ada"])
            .args(options(&url))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        requests.recv_timeout(TOO_LONG).unwrap();
        let id = listed_run(&project);
        let started = Instant::now();
        let cancelled = project.command(&["runs", "cancel", &id]).output().unwrap();
        assert!(cancelled.status.success(), "{cancelled:?}");
        assert!(!run.wait().unwrap().success());
        assert!(started.elapsed() < TOO_LONG, "{:?}", server.then);
    }
}

/// The id of the only run. The model is asked before the start of the run is stored.
fn listed_run(project: &TestProject) -> String {
    let deadline = Instant::now() + TOO_LONG;
    loop {
        let mut list = project.command(&["runs", "list", "--json"]);
        let output = list.output().unwrap();
        let listed = String::from_utf8(output.stdout.clone()).unwrap();
        if let Some(first) = listed.lines().next() {
            let listed: serde_json::Value = serde_json::from_str(first).unwrap();
            return listed["run"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "no run is listed: {output:?}");
    }
}
