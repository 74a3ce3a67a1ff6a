//! `windlass fmt`: one layout for every file.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;

use super::Outcome;
use super::arguments::Fmt;
use super::report::Reporter;
use super::source::Source;

pub(super) fn run(command: &Fmt, reporter: &Reporter) -> anyhow::Result<Outcome> {
    let mut are_good = true;
    for name in &command.files {
        let (source, problem) = Source::read(name);
        if let Some(problem) = problem {
            reporter.show(&source, &[problem])?;
            are_good = false;
            continue;
        }
        let tree = windlass_gram::parse(&source.text);
        let Some(formatted) = windlass_gram::format(&tree) else {
            reporter.show(&source, tree.diagnostics())?;
            are_good = false;
            continue;
        };
        let is_formatted = formatted == source.text;
        let mut out = std::io::stdout().lock();
        if command.check {
            if !is_formatted {
                writeln!(out, "{name}")?;
            }
            are_good &= is_formatted;
        } else if name == "-" {
            out.write_all(formatted.as_bytes())?;
        } else if !is_formatted {
            replace(Path::new(name), &formatted)
                .with_context(|| format!("`{name}` could not be written; it is unchanged"))?;
        }
    }
    Ok(Outcome::from_success(are_good))
}

/// Replaces a file's content in one step, so that no crash leaves half a file. Follows links and
/// keeps the permissions.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize()?;
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file()
        .set_permissions(path.metadata()?.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}
