//! HTTP clients, and the one place that chooses the cryptography of TLS, also that of servers.
//!
//! Connections are encrypted by `ring`. Certificates are verified as the operating system does it. A program that
//! installs another provider of `rustls` before its first client keeps that one.

use std::sync::{Arc, Once};

use reqwest::{Client, ClientBuilder};
use rustls::crypto::{CryptoProvider, ring};

/// A builder of clients. Everything that Windlass sends over HTTP uses it.
pub fn client_builder() -> ClientBuilder {
    initialize_tls();
    Client::builder()
}

/// Makes `ring` the provider of this process, unless it has one. Call this before a library builds its own
/// clients; without a provider, building one panics.
pub fn initialize_tls() {
    static INITIALIZED: Once = Once::new();
    INITIALIZED.call_once(|| {
        // Fails only if the program has installed a provider.
        let _ = ring::default_provider().install_default();
    });
}

/// The provider of this process, for the TLS of a server.
#[must_use]
pub fn tls_provider() -> Arc<CryptoProvider> {
    initialize_tls();
    match CryptoProvider::get_default() {
        Some(provider) => Arc::clone(provider),
        None => Arc::new(ring::default_provider()),
    }
}
