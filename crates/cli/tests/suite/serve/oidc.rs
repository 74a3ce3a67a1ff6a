//! Tokens of an OpenID Connect issuer: a real issuer on a loopback address, and keys that it generated.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

use super::client::{Answer, Request};
use super::server::{TestServer, check_answer};
use crate::suite::acting::{call, finish};

/// A key of the issuer.
enum SigningKey {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl SigningKey {
    fn ec() -> Self {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::Ec(EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap())
    }

    fn ed() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap())
    }

    fn rsa() -> Self {
        let made = std::process::Command::new("openssl")
            .args(["genpkey", "-algorithm", "RSA", "-outform", "DER"])
            .output()
            .unwrap();
        assert!(made.status.success());
        // Versions of `openssl` differ in the form that they write.
        let pair = RsaKeyPair::from_pkcs8(&made.stdout);
        Self::Rsa(
            pair.or_else(|_| RsaKeyPair::from_der(&made.stdout))
                .unwrap(),
        )
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn public(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut key = match self {
            Self::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": text(x), "y": text(y)})
            }
            Self::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref())})
            }
            Self::Rsa(pair) => {
                let RsaPublicKeyComponents { n, e } = pair.public().into();
                let (n, e): (Vec<u8>, Vec<u8>) = (n, e);
                json!({"kty": "RSA", "n": text(&n), "e": text(&e)})
            }
        };
        key["kid"] = json!(id);
        key["use"] = json!("sig");
        key
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }
        }
    }

    fn token(&self, id: &str, claims: &Value) -> String {
        self.token_with(
            &json!({"alg": self.algorithm(), "kid": id, "typ": "at+jwt"}),
            claims,
        )
    }

    fn token_with(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

/// An issuer: a server with its metadata and its keys.
struct Issuer {
    address: SocketAddr,
    keys: Arc<Mutex<Vec<Value>>>,
    /// How often the keys were asked for.
    asked: Arc<AtomicUsize>,
    is_down: Arc<Mutex<bool>>,
}

impl Issuer {
    fn start(keys: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let issuer = Self {
            address: listener.local_addr().unwrap(),
            keys: Arc::new(Mutex::new(keys)),
            asked: Arc::default(),
            is_down: Arc::default(),
        };
        let (keys, asked, is_down) = (
            issuer.keys.clone(),
            issuer.asked.clone(),
            issuer.is_down.clone(),
        );
        let url = issuer.url();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let path = lines.next().unwrap_or_default();
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let path = path.split(' ').nth(1).unwrap_or_default().to_owned();
                if *is_down.lock().unwrap() {
                    continue;
                }
                let bodies = HashMap::from([
                    (
                        "/.well-known/openid-configuration",
                        json!({"issuer": url, "jwks_uri": format!("{url}/keys")}),
                    ),
                    ("/keys", json!({"keys": *keys.lock().unwrap()})),
                ]);
                asked.fetch_add(usize::from(path == "/keys"), Ordering::Relaxed);
                let body = bodies[path.as_str()].to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
            }
        });
        issuer
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn configuration(&self) -> String {
        format!(
            "[oidc]\nissuer = \"{}\"\naudience = \"windlass\"\nroles_claim = \"realm_access.roles\"\n\
             [oidc.roles]\nreaders = [\"read\"]\nrunners = [\"run\"]\napprovers = [\"approve\"]\nadmins = [\"admin\"]\n",
            self.url()
        )
    }

    /// Claims of a token for this principal with these roles.
    fn claims(&self, principal: &str, roles: &[&str]) -> Value {
        let now = now();
        json!({
            "iss": self.url(), "aud": "windlass", "sub": principal, "iat": now, "exp": now + 300,
            "realm_access": {"roles": roles},
        })
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn serve(issuer: &Issuer, turns: &[Value], more: &str) -> TestServer {
    let more = format!("{}{more}", issuer.configuration());
    TestServer::start_project(turns, &more, &[], |_| Vec::new())
}

fn is(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status, answer.problem().as_str()),
        (status, code),
        "{answer:?}"
    );
}

#[test]
fn principal_and_scopes_follow_from_a_token_of_the_issuer() {
    let (ec, ed, rsa) = (SigningKey::ec(), SigningKey::ed(), SigningKey::rsa());
    let issuer = Issuer::start(vec![ec.public("ec"), ed.public("ed"), rsa.public("rsa")]);
    let server = serve(&issuer, &[finish("Done.")], "");
    for (key, id) in [(&ec, "ec"), (&ed, "ed"), (&rsa, "rsa")] {
        let token = key.token(id, &issuer.claims("ida", &["runners", "unknown"]));
        let answer = server.get(&token, "/v1/session");
        check_answer("GET", "/v1/session", &answer);
        let shown = answer.json();
        assert_eq!(shown["kind"], "oidc");
        assert_eq!(shown["principal"], "ida");
        assert_eq!(shown["tenant"], "local");
        assert_eq!(shown["scopes"], json!(["run"]));
    }
    // The keys were fetched once.
    assert_eq!(issuer.asked.load(Ordering::Relaxed), 1);
    let runner = ed.token("ed", &issuer.claims("ida", &["runners"]));
    let body = json!({"agent": "clerk", "task": {"task_id": "t", "description": "Do it."}});
    let start = Request::post("/v1/runs", &body)
        .token(&runner)
        .header("Prefer", "wait=30");
    let run = server.send(&start).json();
    assert_eq!(run["principal"], "ida", "{run}");
    let reader = ed.token("ed", &issuer.claims("ida", &["readers"]));
    is(
        &server.post(&reader, "/v1/runs", &body),
        403,
        "scope_missing",
    );
    let nobody = ed.token("ed", &issuer.claims("ida", &["unknown"]));
    is(&server.get(&nobody, "/v1/runs"), 403, "scope_missing");
}

#[test]
fn a_token_that_is_not_for_this_server_or_not_of_this_issuer_is_refused() {
    let (key, other) = (SigningKey::ed(), SigningKey::ed());
    let issuer = Issuer::start(vec![key.public("ed")]);
    let server = serve(&issuer, &[finish("Done.")], "");
    let claims = issuer.claims("ida", &["admins"]);
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        key.token("ed", &claims)
    };
    assert_eq!(
        server.get(&key.token("ed", &claims), "/v1/version").status,
        200
    );
    let check = |token: &str, code: &str| {
        let answer = server.get(token, "/v1/version");
        check_answer("GET", "/v1/version", &answer);
        is(&answer, 401, code);
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    };
    check(&with("exp", json!(now() - 120)), "token_expired");
    for token in [
        with("exp", Value::Null),
        with("nbf", json!(now() + 600)),
        with("iat", json!(now() + 600)),
        with("aud", json!("other")),
        with("iss", json!("https://other.example")),
        with("sub", json!("")),
        with("sub", json!("x".repeat(5_000))),
        other.token("ed", &claims),
        key.token("no-such-key", &claims),
        key.token_with(&json!({"alg": "none"}), &claims),
        key.token_with(&json!({"alg": "HS256", "kid": "ed"}), &claims),
        "a.b.c".to_owned(),
        "x".repeat(20_000),
    ] {
        check(&token, "token_invalid");
    }
}

#[test]
fn a_new_key_of_the_issuer_is_fetched_and_not_more_often_than_is_good_for_it() {
    let (first, second) = (SigningKey::ed(), SigningKey::ec());
    let issuer = Issuer::start(vec![first.public("first")]);
    let server = serve(&issuer, &[finish("Done.")], "");
    let claims = issuer.claims("ida", &["readers"]);
    let (old, new) = (
        first.token("first", &claims),
        second.token("second", &claims),
    );
    assert_eq!(server.get(&old, "/v1/version").status, 200);
    *issuer.keys.lock().unwrap() = vec![second.public("second")];
    let before = issuer.asked.load(Ordering::Relaxed);
    let began = Instant::now();
    let mut requests = 0;
    while server.get(&new, "/v1/version").status != 200 {
        requests += 1;
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "the key is not fetched"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let asked = issuer.asked.load(Ordering::Relaxed) - before;
    assert!(
        asked <= 1 + began.elapsed().as_secs() as usize / 5,
        "{asked} of {requests}"
    );
    // The key that the issuer does not have any more counts no longer.
    is(&server.get(&old, "/v1/version"), 401, "token_invalid");
}

#[test]
fn without_its_issuer_a_token_counts_only_while_its_key_is_known() {
    let key = SigningKey::ed();
    let issuer = Issuer::start(vec![key.public("ed")]);
    *issuer.is_down.lock().unwrap() = true;
    let server = serve(&issuer, &[finish("Done.")], "");
    let token = key.token("ed", &issuer.claims("ida", &["readers"]));
    let answer = server.get(&token, "/v1/version");
    check_answer("GET", "/v1/version", &answer);
    is(&answer, 503, "issuer_unavailable");
    assert!(answer.header("retry-after").is_some());
    // Tokens of the installation do not need it.
    assert_eq!(
        server
            .get(&server.token("ann", "read"), "/v1/version")
            .status,
        200
    );
    let doctor = server.office.run_command(&["doctor"]);
    assert!(
        doctor.out.contains("cannot be used") && doctor.out.contains(&issuer.url()),
        "{doctor:?}"
    );
    *issuer.is_down.lock().unwrap() = false;
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.get(&token, "/v1/version").status != 200 {
        assert!(Instant::now() < deadline, "the issuer is not asked again");
        std::thread::sleep(Duration::from_millis(200));
    }
    *issuer.is_down.lock().unwrap() = true;
    assert_eq!(server.get(&token, "/v1/version").status, 200);
    *issuer.is_down.lock().unwrap() = false;
    let doctor = server.office.run_command(&["doctor"]);
    assert!(doctor.out.contains("has 1 keys for tokens"), "{doctor:?}");
}

#[test]
fn an_untrusted_project_names_no_issuer() {
    let key = SigningKey::ed();
    let issuer = Issuer::start(vec![key.public("ed")]);
    let server = serve(&issuer, &[finish("Done.")], "");
    let shown = server
        .office
        .command(&["config", "show", "--json"])
        .env_remove("WINDLASS_TRUST_PROJECT")
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(!shown.contains("oidc"), "{shown}");
}

#[test]
fn the_tenant_of_a_token_is_a_claim_of_it() {
    let key = SigningKey::ed();
    let issuer = Issuer::start(vec![key.public("ed")]);
    let configuration = issuer
        .configuration()
        .replace("[oidc.roles]", "tenant_claim = \"org\"\n[oidc.roles]");
    let server = TestServer::start_project(&[finish("Done.")], &configuration, &[], |_| Vec::new());
    let token = |org: Value| {
        let mut claims = issuer.claims("ida", &["admins"]);
        claims["org"] = org;
        key.token("ed", &claims)
    };
    let (acme, rival) = (token(json!("acme")), token(json!("rival")));
    let body = json!({"agent": "clerk", "task": {"task_id": "t", "description": "Do it."}});
    let started = server.post(&acme, "/v1/runs", &body).json();
    let run = format!("/v1/runs/{}", started["run"].as_str().unwrap());
    assert_eq!(server.get(&acme, &run).status, 200);
    is(&server.get(&rival, &run), 404, "no_such_run");
    is(&server.get(&token(Value::Null), &run), 401, "token_invalid");
}

#[test]
fn who_started_a_run_cannot_approve_it_with_any_credential_where_two_people_must() {
    let key = SigningKey::ed();
    let issuer = Issuer::start(vec![key.public("ed")]);
    let turns = [
        call("listFiles", json!({})),
        call("deleteFile", json!({"file": "draft.txt"})),
        finish("The draft is gone."),
    ];
    let server = TestServer::start_project(&turns, &issuer.configuration(), &[], |office| {
        let path = office.project.path("windlass.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("policies = \"policy.cedar\"\n{text}")).unwrap();
        let rules = "@id(\"all\") permit (principal, action, resource);\n\
                     @id(\"two\") @security_level(\"CRITICAL\")\n\
                     forbid (principal, action == Action::\"deleteFile\", resource) unless { context.approved };\n";
        std::fs::write(office.project.path("policy.cedar"), rules).unwrap();
        let added = office.run_command(&["approvers", "add", "ida", "--without-key"]);
        assert_eq!(added.code, 0, "{added:?}");
        Vec::new()
    });
    let oidc = |name: &str| key.token("ed", &issuer.claims(name, &["runners", "approvers"]));
    let ida = oidc("ida");
    let body = json!({"agent": "clerk", "task": {"task_id": "t", "description": "Do it."}});
    let start = Request::post("/v1/runs", &body)
        .token(&ida)
        .header("Prefer", "wait=30");
    let run = server.send(&start).json();
    let asked = format!(
        "/v1/approvals?status=pending&run={}",
        run["run"].as_str().unwrap()
    );
    let asked = server.get(&ida, &asked).json();
    let question = &asked["items"][0];
    let path = format!(
        "/v1/approvals/{}/decision",
        question["id"].as_str().unwrap()
    );
    // A body cannot say that somebody else decides.
    let decision = json!({"decision": "approve", "digest": question["digest_now"]});
    let decide = |token: &str| server.post(token, &path, &decision);
    let mut named = decision.clone();
    named["principal"] = json!("bob");
    is(&server.post(&ida, &path, &named), 422, "does_not_fit");
    is(&decide(&ida), 403, "run_acts_for_you");
    // The same person with another credential.
    let token = server
        .token_with(&["--name", "x", "--scopes", "approve", "--principal", "ida"])
        .0;
    is(&decide(&token), 403, "run_acts_for_you");
    let bob = server.token("bob", "approve");
    let first = decide(&bob);
    assert_eq!(
        (first.status, &first.json()["status"]),
        (200, &json!("pending")),
        "{first:?}"
    );
    is(&decide(&bob), 403, "same_person");
    is(&decide(&oidc("bob")), 403, "same_person");
    is(&decide(&oidc("stranger")), 403, "not_an_approver");
    let second = decide(&oidc("ben"));
    assert_eq!(second.json()["status"], "approved", "{second:?}");
    let ended = server.wait_for(&ida, run["run"].as_str().unwrap(), "ended");
    assert_eq!(ended["end"]["end"], "completed", "{ended}");
}
