//! The arguments of `windlass serve` and `windlass openapi`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::agent::DataDirectory;

#[derive(Debug, Args)]
#[command(
    after_help = "Every request needs a token of `windlass token create` or of the issuer in `[oidc]` of the \
                  configuration. At a terminal, a URL is printed that logs a browser in as you: it is valid once, for 10 \
                  minutes, and opening /login prints another one. The first interrupt lets requests and steps of \
                  runs end; the second aborts them. No run is cancelled: the next worker or server resumes it.\n\n\
                  Exit code: 0 if it was stopped, 1 if it failed, 2 for wrong usage."
)]
pub(crate) struct Serve {
    /// Where to listen. Other addresses than loopback ones need --tls-cert or --behind-proxy.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4747")]
    pub(crate) listen: SocketAddr,

    /// The certificate of the server in PEM, followed by those of intermediate authorities. It is read again when it
    /// changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the certificate in PEM. Other users must not be able to read it.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// A proxy in front of this server adds TLS, and sets X-Forwarded-Proto and X-Forwarded-For.
    #[arg(long)]
    pub(crate) behind_proxy: bool,

    /// A name that clients reach the server by. Can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,

    /// How many runs the worker of the server resumes at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: u16,

    /// How many requests a token may make in a second.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: u32,

    /// Resume no runs: `windlass worker` does that elsewhere.
    #[arg(long)]
    pub(crate) no_worker: bool,

    #[command(flatten)]
    pub(crate) data: DataDirectory,
}
