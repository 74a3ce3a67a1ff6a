//! All routes of the API, by subject.

mod agents;
mod approvals;
mod chat;
mod configuration;
mod conversations;
mod decisions;
mod events;
mod experiments;
mod health;
mod learning;
mod memory;
mod plans;
mod policies;
mod retention;
mod runs;
mod session;
mod stops;
mod tools;
mod usage;
mod webhooks;

use crate::route::Route;

/// All routes.
pub(crate) fn routes() -> Vec<Route> {
    [
        health::routes(),
        session::routes(),
        agents::routes(),
        runs::routes(),
        decisions::routes(),
        stops::routes(),
        events::routes(),
        conversations::routes(),
        chat::routes(),
        approvals::routes(),
        tools::routes(),
        policies::routes(),
        plans::routes(),
        memory::routes(),
        learning::routes(),
        experiments::routes(),
        webhooks::routes(),
        configuration::routes(),
        usage::routes(),
        retention::routes(),
    ]
    .concat()
}
