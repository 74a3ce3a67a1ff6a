//! Finds the library named on the command line: one that ships with the program, or a library file.

use std::path::Path;

use windlass_tools::{ToolLibrary, builtin_libraries, builtin_library};

use super::schema::unknown;

/// The library called `name`, or declared in the TOML file of that name.
pub(super) fn find(name: &str) -> anyhow::Result<ToolLibrary> {
    if let Some(library) = builtin_library(name) {
        return Ok(library);
    }
    let path = Path::new(name);
    if path.extension().is_none_or(|extension| extension != "toml") {
        let libraries = builtin_libraries();
        let known: Vec<&str> = libraries.iter().map(ToolLibrary::name).collect();
        let told = unknown("library", name, &known, "this program");
        anyhow::bail!("{told}\nhint: the name of a library file ends in `.toml`");
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| anyhow::anyhow!("the library file `{name}` cannot be read: {error}"))?;
    // The parent of a bare name is the empty path, which is no directory.
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let directory = directory.unwrap_or(Path::new("."));
    ToolLibrary::from_toml(&text, directory).map_err(|errors| {
        let told: Vec<String> = errors
            .iter()
            .map(|error| format!("{name}:{error}"))
            .collect();
        anyhow::anyhow!("the library file is not valid\n{}", told.join("\n"))
    })
}
