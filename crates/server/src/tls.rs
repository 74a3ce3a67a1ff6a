//! TLS: a certificate and its key from files, which are read again when they change.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use windlass_files::{OwnerError, check_owner, check_secret};

/// How often the files are looked at.
const CHECK_PERIOD: Duration = Duration::from_secs(1);

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// The files of a certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by those of the authorities between it and the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// Another user can change a file, or read the key.
    Owner(PathBuf, OwnerError),
    /// A file is larger than any certificate.
    TooLarge(PathBuf),
    /// A file has no certificate.
    NoCertificate(PathBuf),
    /// A file has no private key.
    NoKey(PathBuf),
    /// The key is protected by a passphrase.
    EncryptedKey(PathBuf),
    /// The key is not that of the certificate.
    OtherKey(TlsFiles),
    /// Certificate or key are damaged, or of a kind that is not supported.
    Invalid(TlsFiles, String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => {
                write!(f, "the file `{}` cannot be read: {error}", path.display())
            }
            Self::Owner(path, error) => {
                write!(f, "the file `{}` is not used: {error}", path.display())
            }
            Self::TooLarge(path) => write!(
                f,
                "the file `{}` has more than {MAX_FILE} bytes, so it is no certificate or key",
                path.display()
            ),
            Self::NoCertificate(path) => write!(
                f,
                "the file `{}` has no certificate\nhint: name a file in PEM, with a line \
                 `-----BEGIN CERTIFICATE-----`",
                path.display()
            ),
            Self::NoKey(path) => write!(
                f,
                "the file `{}` has no private key\nhint: name a file in PEM, with a line \
                 `-----BEGIN PRIVATE KEY-----`",
                path.display()
            ),
            Self::EncryptedKey(path) => write!(
                f,
                "the private key in `{}` is protected by a passphrase\nhint: write it without one with `openssl pkey \
                 -in FILE -out FILE`, and give it the mode 0600",
                path.display()
            ),
            Self::OtherKey(files) => write!(
                f,
                "the private key in `{}` is not that of the certificate in `{}`\nhint: the first certificate in the \
                 file must be that of the server",
                files.key.display(),
                files.certificate.display()
            ),
            Self::Invalid(files, reason) => write!(
                f,
                "the certificate in `{}` with the key in `{}` cannot be used: {reason}",
                files.certificate.display(),
                files.key.display()
            ),
        }
    }
}

impl std::error::Error for TlsError {}

/// Encrypts connections with the present certificate.
#[derive(Debug)]
pub(crate) struct TlsEncryption {
    files: TlsFiles,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    /// The files when they were read last, whether or not they could be used.
    version: [Option<FileVersion>; 2],
}

/// What differs between a file and its replacement.
type FileVersion = [i128; 6];

impl TlsEncryption {
    /// Reads the files.
    ///
    /// # Errors
    /// If certificate or key cannot be used.
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let version = version(&files);
        let config = Arc::new(read(&files)?);
        Ok(Self {
            files,
            current: Mutex::new(Current { config, version }),
        })
    }

    /// Encrypts a connection. `None` if the client does not take part in it.
    pub(crate) async fn accept<S>(
        &self,
        stream: S,
        closing: &CancellationToken,
    ) -> Option<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let config = {
            let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&current.config)
        };
        let handshake = TlsAcceptor::from(config).accept(stream);
        tokio::select! {
            done = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake) => match done {
                Ok(Ok(stream)) => Some(stream),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a client did not complete the TLS handshake");
                    None
                }
                Err(_) => None,
            },
            () = closing.cancelled() => None,
        }
    }

    /// Reads the files again whenever they change, until the server closes. What cannot be used changes nothing.
    pub(crate) async fn follow(self: Arc<Self>, closing: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(CHECK_PERIOD) => {}
                () = closing.cancelled() => return,
            }
            let encryption = Arc::clone(&self);
            let _ = tokio::task::spawn_blocking(move || encryption.reload()).await;
        }
    }

    fn reload(&self) {
        let version = version(&self.files);
        {
            let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            if current.version == version {
                return;
            }
        }
        let read = read(&self.files);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.version = version;
        match read {
            Ok(config) => {
                current.config = Arc::new(config);
                tracing::info!("certificate reloaded");
            }
            // One of the two may have been replaced, and the other follows.
            Err(error) => tracing::warn!(%error, "keeping the previous certificate"),
        }
    }
}

fn version(files: &TlsFiles) -> [Option<FileVersion>; 2] {
    let of = |found: Metadata| {
        let numbers: [i64; 4] = [
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        ];
        let [a, b, c, d] = numbers.map(i128::from);
        [a, b, c, d, found.ino().into(), found.size().into()]
    };
    [&files.certificate, &files.key].map(|path| path.metadata().ok().map(of))
}

fn read(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let (path, key_path) = (&files.certificate, &files.key);
    check_owner(path).map_err(|error| match error {
        OwnerError::Unknown(error) => TlsError::Unreadable(path.clone(), error),
        error => TlsError::Owner(path.clone(), error),
    })?;
    let certificates = read_file(path, |_| Ok(()))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificates).collect();
    let chain = match chain {
        Ok(chain) if !chain.is_empty() => chain,
        Ok(_) | Err(_) => return Err(TlsError::NoCertificate(path.clone())),
    };
    let key = read_file(key_path, check_secret)?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| {
        match String::from_utf8_lossy(&key).contains("ENCRYPTED") {
            true => TlsError::EncryptedKey(key_path.clone()),
            false => TlsError::NoKey(key_path.clone()),
        }
    })?;
    let invalid = |error: rustls::Error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::OtherKey(files.clone()),
        error => TlsError::Invalid(files.clone(), error.to_string()),
    };
    let builder = ServerConfig::builder_with_provider(windlass_http::tls_provider());
    let mut config = builder
        .with_safe_default_protocol_versions()
        .map_err(invalid)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(invalid)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn read_file(
    path: &Path,
    check: impl FnOnce(&File) -> Result<(), OwnerError>,
) -> Result<Vec<u8>, TlsError> {
    let unreadable = |error| TlsError::Unreadable(path.to_owned(), error);
    let file = File::open(path).map_err(unreadable)?;
    check(&file).map_err(|error| TlsError::Owner(path.to_owned(), error))?;
    let mut content = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut content)
        .map_err(unreadable)?;
    match content.len() as u64 > MAX_FILE {
        true => Err(TlsError::TooLarge(path.to_owned())),
        false => Ok(content),
    }
}
