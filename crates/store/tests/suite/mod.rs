//! One module for each thing the store promises.

mod approvals;
mod asking;
mod conversations;
mod crash;
mod crash_points;
mod executions;
mod faults;
mod forgeries;
mod full_disk;
mod holds;
mod journal;
mod limits;
mod lists;
mod logs;
mod mailbox;
mod mailbox_crash;
mod opening;
mod ownership;
mod pins;
mod reading;
mod retention;
mod scene;
mod secrets;
mod standing;
mod support;
mod torn_log;
