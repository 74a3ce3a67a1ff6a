//! Encrypted connections: real certificates, and a client that verifies them.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::client::{Answer, Request};
use super::server::TestServer;
use crate::suite::acting::{OfficeProject, finish};

/// Writes a certificate for 127.0.0.1 and its key, with `openssl`.
fn certify(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) = (
        directory.join(format!("{name}.pem")),
        directory.join(format!("{name}.key")),
    );
    let arguments = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        &format!("/CN={name}"),
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
        key.to_str().unwrap(),
        "-out",
        certificate.to_str().unwrap(),
    ]
    .map(str::to_owned);
    let made = Command::new("openssl").args(arguments).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    set_mode(&key, 0o600);
    (certificate, key)
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn arguments(certificate: &Path, key: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    vec![
        "--tls-cert".to_owned(),
        text(certificate),
        "--tls-key".to_owned(),
        text(key),
    ]
}

/// An encrypted connection to a server with this certificate.
fn connect(
    address: SocketAddr,
    certificate: &Path,
) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    for one in CertificateDer::pem_file_iter(certificate).unwrap() {
        roots.add(one.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(windlass_http::tls_provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::from(address.ip());
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    connection.complete_io(&mut stream)?;
    Ok(StreamOwned::new(connection, stream))
}

fn version(server: &TestServer, certificate: &Path, token: &str) -> std::io::Result<Answer> {
    let stream = connect(server.address, certificate)?;
    let request = Request::get("/v1/version").token(token);
    Ok(request.send_over(stream, server.address))
}

fn start(
    files: impl FnOnce(&OfficeProject) -> (PathBuf, PathBuf),
) -> (TestServer, PathBuf, PathBuf) {
    let mut used = None;
    let server = TestServer::start_project(&[finish("Done.")], "", &[], |office| {
        let (certificate, key) = files(office);
        let arguments = arguments(&certificate, &key);
        used = Some((certificate, key));
        arguments
    });
    let (certificate, key) = used.unwrap();
    (server, certificate, key)
}

#[test]
fn requests_are_encrypted_and_clients_without_encryption_get_nothing() {
    let (server, certificate, _) =
        start(|office| certify(office.project.path("").as_path(), "one"));
    let token = server.token("ann", "read");
    let answer = version(&server, &certificate, &token).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    // A page of the server is one over https.
    for (scheme, status) in [("https", 200), ("http", 403)] {
        let stream = connect(server.address, &certificate).unwrap();
        let origin = format!("{scheme}://{}", server.address);
        let request = Request::get("/v1/version")
            .token(&token)
            .header("Origin", &origin);
        assert_eq!(
            request.send_over(stream, server.address).status,
            status,
            "{scheme}"
        );
    }
    let mut plain = TcpStream::connect(server.address).unwrap();
    plain
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let bytes = Request::get("/v1/version")
        .token(&token)
        .bytes(server.address);
    std::io::Write::write_all(&mut plain, &bytes).unwrap();
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut answer);
    assert!(Answer::parse(&answer).is_none(), "{answer:?}");
}

#[test]
fn a_replaced_certificate_is_used_without_a_restart_and_a_wrong_one_is_not() {
    let (server, certificate, key) =
        start(|office| certify(office.project.path("").as_path(), "one"));
    let token = server.token("ann", "read");
    let first = server.office.project.path("first.pem");
    std::fs::copy(&certificate, &first).unwrap();
    let open = connect(server.address, &first).unwrap();
    let (next, next_key) = certify(server.office.project.path("").as_path(), "two");
    // Only the certificate: it does not fit the key, so the previous one stays.
    std::fs::rename(&next, &certificate).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(version(&server, &first, &token).is_ok());
    assert!(version(&server, &certificate, &token).is_err());
    std::fs::rename(&next_key, &key).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while version(&server, &certificate, &token).is_err() {
        assert!(Instant::now() < deadline, "the certificate is not used");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(version(&server, &first, &token).is_err());
    // A connection that was open before goes on.
    let request = Request::get("/v1/version").token(&token);
    assert_eq!(request.send_over(open, server.address).status, 200);
}

#[test]
fn a_certificate_that_cannot_be_used_is_refused_with_the_reason() {
    let office = OfficeProject::new(&[finish("Done.")]);
    let directory = office.project.path("");
    let (certificate, key) = certify(&directory, "one");
    let (_, other) = certify(&directory, "two");
    let serve = |certificate: &Path, key: &Path| {
        let start = ["serve", "--listen", "127.0.0.1:0"].map(str::to_owned);
        let all = [start.to_vec(), arguments(certificate, key)].concat();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let output = office.command(&all).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        error
    };
    let missing = directory.join("missing.pem");
    let encrypted = directory.join("encrypted.key");
    let made = Command::new("openssl")
        .args(["pkcs8", "-topk8", "-passout", "pass:secret", "-in"])
        .args([&key, Path::new("-out"), &encrypted])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    set_mode(&encrypted, 0o600);
    let damaged = directory.join("damaged.pem");
    let text = std::fs::read_to_string(&certificate).unwrap();
    std::fs::write(&damaged, text.replacen("MII", "AAA", 1)).unwrap();
    for (certificate, key, expected) in [
        (&certificate, &other, "is not that of the certificate"),
        (&missing, &key, "cannot be read"),
        (&certificate, &missing, "cannot be read"),
        (&key, &key, "has no certificate"),
        (&damaged, &key, "cannot be used"),
        (&certificate, &encrypted, "protected by a passphrase"),
    ] {
        let error = serve(certificate, key);
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let keyless = directory.join("keyless.key");
    std::fs::copy(&certificate, &keyless).unwrap();
    set_mode(&keyless, 0o600);
    assert!(serve(&certificate, &keyless).contains("has no private key"));
    set_mode(&key, 0o644);
    let error = serve(&certificate, &key);
    assert!(
        error.contains("other users can read it") && error.contains("chmod go-rwx"),
        "{error}"
    );
    let alone = office
        .command(&["serve", "--tls-cert", "one.pem"])
        .output()
        .unwrap();
    assert_eq!(alone.status.code(), Some(2));
}

#[test]
fn other_computers_reach_an_encrypted_server_by_its_name_only() {
    let mut used = None;
    let server = TestServer::start_project(&[finish("Done.")], "", &[], |office| {
        let (certificate, key) = certify(office.project.path("").as_path(), "one");
        let mut all = arguments(&certificate, &key);
        all.extend(["--host", "windlass.example.org"].map(str::to_owned));
        used = Some(certificate);
        all
    });
    let token = server.token("ann", "read");
    for (host, status) in [("windlass.example.org", 200), ("evil.example", 403)] {
        let stream = connect(server.address, used.as_ref().unwrap()).unwrap();
        let request = Request::get("/v1/version")
            .token(&token)
            .header("Host", host);
        assert_eq!(
            request.send_over(stream, server.address).status,
            status,
            "{host}"
        );
    }
    let open = [
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--tls-cert",
        "one.pem",
        "--tls-key",
        "one.key",
    ];
    let refused = server.office.command(&open).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("--host")
    );
}
