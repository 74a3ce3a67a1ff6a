//! The arguments of `windlass trust`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "A project that was found in the working directory or above it can start programs, send data and \
                  loosen rules only if you trust it. If one of its files changes, you are asked again.\n\n\
                  Exit code: 0 if the project is trusted (or not trusted any more, with --revoke), 1 if not, 2 for \
                  wrong usage."
)]
pub(crate) struct Trust {
    /// The directory of the project.
    #[arg(value_name = "DIRECTORY", default_value = ".")]
    pub(crate) directory: PathBuf,

    /// Trust the project without a question.
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    pub(crate) yes: bool,

    /// List the trusted projects.
    #[arg(long, conflicts_with_all = ["revoke", "directory"])]
    pub(crate) list: bool,

    /// Do not trust the project any more.
    #[arg(long)]
    pub(crate) revoke: bool,

    /// Print JSON. A project that is not trusted is only shown, unless you pass --yes.
    #[arg(long)]
    pub(crate) json: bool,
}
