//! `windlass gaps propose`: a specification of what is missing, printed or added to an agent file.

use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use super::wishes::found;
use super::{Outcome, read};
use crate::arguments::GapsPropose;
use crate::format::replace;
use crate::report::Reporter;
use crate::schema::read_file;
use crate::terminal::{complain, put, put_content};

pub(super) fn run(
    command: &GapsPropose,
    data: Option<&Path>,
    reporter: &Reporter,
) -> anyhow::Result<Outcome> {
    let wishes = read(data, None)?;
    let wish = found(&wishes, &command.wish)?;
    if let Some(because) = wish.because() {
        anyhow::bail!("there is a tool for that: {because}");
    }
    let Some(proposal) = wish.proposal() else {
        anyhow::bail!(
            "there is nothing in `{}` to make a specification of",
            wish.tool
        );
    };
    if let Some(file) = &command.write
        && !append(file, &proposal, reporter)?
    {
        return Ok(Outcome::Failed);
    }
    if command.json {
        let told = json!({
            "tool": wish.tool,
            "wish": wish.text,
            "count": wish.times.len(),
            "proposed_tool": proposal,
            "written_to": command.write,
        });
        put(&format!("{told}\n"))?;
    } else {
        put_content(&format!("{}\n", proposal.trim_end()))?;
        if let Some(file) = &command.write {
            complain(&format!("added to {}", file.display()))?;
        }
    }
    Ok(Outcome::Done)
}

/// Adds a specification to an agent file. Whether the file could be read; a name that is taken is an
/// error, and so is anything that would leave a file with mistakes behind.
fn append(path: &Path, proposal: &str, reporter: &Reporter) -> anyhow::Result<bool> {
    let Some(declared) = read_file(path, reporter)? else {
        return Ok(false);
    };
    let proposed = windlass_spec::read(proposal);
    let proposed = proposed
        .file
        .context("the proposed specification cannot be read")?;
    for tool in proposed.tools() {
        let name = tool.name().as_str();
        let is_taken = declared.tool(name).is_some() || declared.agent(name).is_some();
        anyhow::ensure!(
            !is_taken,
            "`{}` has something called `{name}` already; nothing was written",
            path.display()
        );
    }
    let before = std::fs::read_to_string(path)
        .with_context(|| format!("`{}` cannot be read", path.display()))?;
    let blank = if before.is_empty() || before.ends_with("\n\n") {
        ""
    } else {
        "\n"
    };
    let end = if before.is_empty() || before.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let after = format!("{before}{end}{blank}{}\n", proposal.trim_end());
    anyhow::ensure!(
        windlass_spec::read(&after).file.is_some(),
        "the specification does not fit `{}`; nothing was written",
        path.display()
    );
    replace(path, &after)
        .map_err(|why| anyhow::anyhow!("`{}` was not written: {why}", path.display()))?;
    Ok(true)
}
