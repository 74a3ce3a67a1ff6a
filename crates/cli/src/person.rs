//! The local identity: the user of the operating system. It cannot be set on the command line.

use windlass_core::approval::{Identity, Principal};
use windlass_runtime::Who;
use windlass_spec::NonEmptyText;

/// The identity of the user of this command.
pub(super) fn local() -> anyhow::Result<Identity> {
    let who = Who::local();
    let principal = Principal::new(who.principal.clone()).map_err(|error| {
        anyhow::anyhow!(
            "the user name {:?} is not a valid principal: {error}\n\
             hint: it comes from the environment variable USER",
            who.principal
        )
    })?;
    Ok(Identity::new(NonEmptyText::new(who.tenant)?, principal))
}
