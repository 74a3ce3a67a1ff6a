//! One module for each thing the store promises.

mod conversations;
mod crash;
mod full_disk;
mod journal;
mod opening;
mod ownership;
mod reading;
mod retention;
mod secrets;
mod support;
