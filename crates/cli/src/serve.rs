//! `windlass serve`: answers requests of the HTTP API and resumes runs. `windlass openapi` describes the API.

use std::io::{IsTerminal as _, stderr};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use windlass_server::{LoginOptions, Server, ServerOptions, TlsFiles, openapi_document};
use windlass_service::types::Stop;

use super::CommandOutcome;
use super::arguments::Serve;
use super::program::Program;
use super::terminal::{eprint_line, print_json};

pub(super) fn run(program: &Program, command: &Serve) -> anyhow::Result<CommandOutcome> {
    let tls = command.tls_cert.clone().zip(command.tls_key.clone());
    let options = ServerOptions {
        listen: command.listen,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        is_behind_proxy: command.behind_proxy,
        hosts: command.host.clone(),
        jobs: usize::from(command.jobs),
        requests_per_second: command.rate,
        has_worker: !command.no_worker,
        ..ServerOptions::default()
    };
    if let Err(error) = options.check() {
        eprint_line(&format!("error: {error}"))?;
        return Ok(CommandOutcome::Code(2));
    }
    let service = program.service(command.data.as_deref());
    let identity = program.identity()?;
    let login = stderr().is_terminal().then(|| LoginOptions {
        identity: identity.clone(),
        announce: Arc::new(|url: &str| {
            let _ = eprint_line(&format!("log in with a browser: {url}"));
        }),
    });
    let options = ServerOptions { login, ..options };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let stop = stop_on_signals()?;
        let server = Server::bind(service.clone(), options).await?;
        let scheme = match server.is_encrypted() {
            true => "https",
            false => "http",
        };
        eprint_line(&format!(
            "serving on {scheme}://{}; press Ctrl-C to stop",
            server.address()
        ))?;
        let served = server.run(&identity, stop).await;
        service.close().await;
        served?;
        anyhow::Ok(())
    })?;
    Ok(CommandOutcome::Done)
}

/// Prints the OpenAPI document.
pub(super) fn print_openapi() -> anyhow::Result<CommandOutcome> {
    print_json(&format!("{:#}\n", openapi_document()))?;
    Ok(CommandOutcome::Done)
}

/// Stops the server on an interrupt or on a request of the system to end: the first lets steps end, the second aborts
/// them.
fn stop_on_signals() -> std::io::Result<Stop> {
    let stop = Stop::default();
    let stopped = stop.clone();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        for number in 0.. {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if number == 0 {
                let _ = eprint_line(
                    "stopping after the present steps; interrupt again to stop at once",
                );
                stopped.after_step.cancel();
            } else {
                stopped.at_once.cancel();
            }
        }
    });
    Ok(stop)
}
