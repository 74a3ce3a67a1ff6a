//! The login of a browser: a URL at the terminal, a cookie, and what a page may do with it.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::{Answer, Request};
use super::server::{TestServer, check_answer};
use crate::suite::acting::{OfficeProject, call, finish};
use crate::suite::session::Session;

/// A server at a terminal.
struct TerminalServer {
    office: OfficeProject,
    terminal: Session,
    address: SocketAddr,
    url: String,
}

impl TerminalServer {
    fn start(turns: &[Value]) -> Self {
        let office = OfficeProject::new(turns);
        let configuration = "libraries = [\"tools.toml\"]\nmodel = \"scripted:answers.jsonl\"\n";
        std::fs::write(office.project.path("windlass.toml"), configuration).unwrap();
        let command = office.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut terminal = Session::at_a_terminal(&command);
        terminal.expect("serving on http://");
        let url = next_url(&mut terminal);
        let rest = url.strip_prefix("http://").unwrap();
        let address = rest.split('/').next().unwrap().parse().unwrap();
        Self {
            office,
            terminal,
            address,
            url,
        }
    }

    fn send(&self, request: &Request) -> Answer {
        request.send(self.address)
    }

    /// Opens a URL as a browser does, and returns the cookie that it gets.
    fn open(&self, url: &str) -> Result<String, String> {
        let path = url.split_once(&self.address.to_string()).unwrap().1;
        let answer = self.send(&Request::get(path));
        check_answer("GET", "/login", &answer);
        match answer.status {
            303 => {
                assert_eq!(answer.header("location"), Some("/v1/session"));
                Ok(answer.header("set-cookie").unwrap().to_owned())
            }
            _ => Err(answer.problem()),
        }
    }

    fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// The next login URL at the terminal.
fn next_url(terminal: &mut Session) -> String {
    terminal.expect("log in with a browser: ");
    terminal.expect("\n");
    let line = terminal.last_line();
    line.split_once(": ").unwrap().1.trim().to_owned()
}

/// What a browser sends back of a cookie.
fn sent(cookie: &str) -> String {
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn a_url_at_the_terminal_logs_a_browser_in_once() {
    let mut server = TerminalServer::start(&[finish("Done.")]);
    let url = server.url.clone();
    let forged = format!("{}{}", &url[..url.len() - 4], "0000");
    assert_eq!(server.open(&forged), Err("code_not_valid".to_owned()));
    let cookie = server.open(&url).unwrap();
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert_eq!(server.open(&url), Err("code_not_valid".to_owned()));
    let cookie = sent(&cookie);
    let session = Request::get("/v1/session").header("Cookie", &cookie);
    let shown = server.send(&session);
    check_answer("GET", "/v1/session", &shown);
    let shown = shown.json();
    assert_eq!(
        (&shown["kind"], &shown["principal"]),
        (&json!("session"), &json!("ann"))
    );
    assert_eq!(shown["scopes"], json!(["admin"]));
    assert!(shown["expires_at"].is_string());
    // Opening the page without a code asks for another one, which is printed once.
    let without_code = server.send(&Request::get("/login"));
    assert_eq!(
        (without_code.status, without_code.problem().as_str()),
        (401, "code_needed")
    );
    server.send(&Request::get("/login"));
    let next = next_url(&mut server.terminal);
    assert_ne!(next, url);
    assert!(server.open(&next).is_ok());
    // It is no token, and a token is no session.
    let secret = cookie.split_once('=').unwrap().1;
    let as_token = server.send(&Request::get("/v1/session").token(secret));
    assert_eq!(
        (as_token.status, as_token.problem().as_str()),
        (401, "token_unknown")
    );
    let log = server
        .office
        .run_command(&["audit", "export", "--from", "1h"]);
    assert!(
        !log.out.contains(secret) && log.out.contains("browser session"),
        "{log:?}"
    );
}

#[test]
fn a_page_of_another_site_cannot_use_the_session_to_change_something() {
    let server = TerminalServer::start(&[
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("Done."),
    ]);
    let cookie = sent(&server.open(&server.url).unwrap());
    let body = json!({"agent": "clerk", "task": {"task_id": "t", "description": "Do it."}});
    let start = || {
        Request::post("/v1/runs", &body)
            .header("Cookie", &cookie)
            .header("Prefer", "wait=30")
    };
    let nameless = server.send(&start());
    assert_eq!(
        (nameless.status, nameless.problem().as_str()),
        (403, "origin_needed")
    );
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://127.0.0.1",
    ] {
        let foreign = server.send(&start().header("Origin", origin));
        assert_eq!(
            (foreign.status, foreign.problem().as_str()),
            (403, "origin_not_accepted")
        );
    }
    let own = server.send(&start().header("Origin", &server.origin()));
    assert_eq!(own.status, 200, "{own:?}");
    let run = own.json();
    assert_eq!(run["principal"], "ann");
    let asked = Request::get("/v1/approvals?status=pending").header("Cookie", &cookie);
    let asked = server.send(&asked).json();
    let question = &asked["items"][0];
    let decide = Request::post(
        &format!(
            "/v1/approvals/{}/decision",
            question["id"].as_str().unwrap()
        ),
        &json!({"decision": "approve", "digest": question["digest_now"]}),
    );
    let decide = decide
        .header("Cookie", &cookie)
        .header("Origin", &server.origin());
    let decided = server.send(&decide);
    assert_eq!(decided.json()["status"], "approved", "{decided:?}");
    let id = question["id"].as_str().unwrap();
    let shown = server.office.run_command(&["approvals", "show", id]);
    assert!(shown.out.contains("on a page"), "{shown:?}");
}

#[test]
fn a_session_ends_when_it_is_ended_or_revoked() {
    let mut server = TerminalServer::start(&[finish("Done.")]);
    let cookie = sent(&server.open(&server.url).unwrap());
    let show = |cookie: &str| server.send(&Request::get("/v1/session").header("Cookie", cookie));
    assert_eq!(show(&cookie).status, 200);
    let end = Request::new("POST", "/v1/session/end")
        .header("Cookie", &cookie)
        .header("Origin", &server.origin());
    let ended = server.send(&end);
    check_answer("POST", "/v1/session/end", &ended);
    assert_eq!(ended.status, 204);
    assert!(ended.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(show(&cookie).problem(), "token_revoked");

    server.send(&Request::get("/login"));
    let url = next_url(&mut server.terminal);
    let cookie = sent(&server.open(&url).unwrap());
    let listed = server.office.run_command(&["token", "list", "--json"]);
    let sessions = listed
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let valid = sessions.filter(|one| one["name"] == "browser session" && one["state"] == "valid");
    let ids: Vec<Value> = valid.map(|one| one["id"].clone()).collect();
    assert_eq!(ids.len(), 1, "{listed:?}");
    let revoked = server
        .office
        .run_command(&["token", "revoke", ids[0].as_str().unwrap()]);
    assert_eq!(revoked.code, 0, "{revoked:?}");
    let answer = server.send(&Request::get("/v1/session").header("Cookie", &cookie));
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (401, "token_revoked")
    );
}

#[test]
fn a_server_without_a_terminal_has_no_login_and_a_token_no_session() {
    let server = TestServer::start(&[finish("Done.")]);
    for path in ["/login", "/login?code=0"] {
        let answer = server.send(&Request::get(path));
        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(["no_login", "code_not_valid"].contains(&answer.problem().as_str()));
    }
    let token = server.token("ann", "read");
    let ended = server.send(&Request::new("POST", "/v1/session/end").token(&token));
    assert_eq!(
        (ended.status, ended.problem().as_str()),
        (409, "no_session")
    );
    let shown = server.get(&token, "/v1/session").json();
    assert_eq!(
        (&shown["kind"], &shown["scopes"]),
        (&json!("token"), &json!(["read"]))
    );
}
