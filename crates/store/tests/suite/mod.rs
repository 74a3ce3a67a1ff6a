//! One module for each thing the store promises.

mod approvals;
mod asking;
mod conversations;
mod crash;
mod forgeries;
mod full_disk;
mod holds;
mod journal;
mod mailbox;
mod mailbox_crash;
mod opening;
mod ownership;
mod reading;
mod retention;
mod secrets;
mod standing;
mod support;
