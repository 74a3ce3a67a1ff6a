//! `windlass worker`: resumes every run that can go on, until it is stopped. With it, `windlass approvals
//! approve` is enough.

use std::sync::Arc;

use windlass_service::WorkerOptions;

use super::Outcome;
use super::arguments::Worker;
use super::interrupt::stop_on_interrupt;
use super::live::Live;
use super::program::{Notices, Program};
use super::run::{block_on, watch};
use super::terminal::complain;

pub(super) fn run(program: &Program, command: &Worker) -> anyhow::Result<Outcome> {
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
            watch: Some(watch(command.jsonl, &live)),
        };
        let data = service.data_directory()?;
        complain(&format!(
            "worker: resumes the runs in {}; Ctrl-C stops it",
            data.display()
        ))?;
        service.work(&identity, options).await?;
        anyhow::Ok(())
    })??;
    Ok(Outcome::Done)
}
