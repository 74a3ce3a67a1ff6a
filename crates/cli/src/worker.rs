//! `windlass worker`: resumes every run that can continue, until it is stopped. With a worker, an approved run
//! needs no `windlass runs resume`.

use std::sync::Arc;

use windlass_service::{WorkerOptions, WorkerTenants};

use super::CommandOutcome;
use super::arguments::Worker;
use super::interrupt::stop_on_interrupt;
use super::live::Live;
use super::program::{Notices, Program};
use super::run::{block_on, watch};
use super::terminal::eprint_line;

pub(super) fn run(program: &Program, command: &Worker) -> anyhow::Result<CommandOutcome> {
    let notices = match command.jsonl {
        true => Notices::JsonLines,
        false => Notices::Text,
    };
    let service = program.service_with(command.data.as_deref(), notices);
    let identity = program.identity()?;
    block_on(&service, async {
        let live = Arc::new(Live::without_spinner());
        let options = WorkerOptions {
            jobs: usize::from(command.jobs),
            stop: stop_on_interrupt(),
            until_idle: command.until_idle,
            tenants: WorkerTenants::Own,
            watch: Some(watch(command.jsonl, &live)),
        };
        let data = service.data_directory()?;
        eprint_line(&format!(
            "worker: resuming runs in {}; press Ctrl-C to stop",
            data.display()
        ))?;
        service.work(&identity, options).await?;
        anyhow::Ok(())
    })??;
    Ok(CommandOutcome::Done)
}
