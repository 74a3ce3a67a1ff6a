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
mod gaps;
mod holds;
mod inbox;
mod inbox_crash;

mod journal;
mod limits;
mod lists;
mod logs;
mod memory;
mod opening;
mod ownership;
mod pins;
mod reading;
mod resumable;
mod retention;
mod scene;
mod secrets;
mod standing;
mod support;
mod torn_log;
