//! What no program that Windlass starts may reach: its keys, its records of trust, and its data.

use std::path::Path;

use windlass_keys::key_files;
use windlass_spawn::Isolation;
use windlass_spec::IsolationLevel;

use crate::registry::TrustRecords;

/// What is covered in a data directory that a program or the home directory is in.
const PRIVATE_DATA: &[&str] = &[
    "windlass.db",
    "windlass.db-wal",
    "windlass.db-shm",
    "windlass.db-position",
    "tokens",
];

/// The isolation of programs by an installation that stores its runs in this directory.
#[must_use]
pub fn isolation(level: IsolationLevel, data: Option<&Path>) -> Isolation {
    let mut isolation = Isolation::new(level);
    let records = TrustRecords::of_user();
    let state = records
        .as_ref()
        .and_then(|records| records.directory().parent());
    for hidden in state.map(Path::to_owned).into_iter().chain(key_files()) {
        isolation = isolation.hiding(hidden);
    }
    match data {
        Some(data) => isolation.hiding_data(data, PRIVATE_DATA),
        None => isolation,
    }
}
