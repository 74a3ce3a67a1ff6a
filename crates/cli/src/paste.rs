//! Commands of this program that are printed to be pasted.

use std::path::Path;

/// A command as it works where it is pasted: with the data directory that this command was given.
pub(super) fn command(command: &str, data: Option<&Path>) -> String {
    match data {
        None => format!("windlass {command}"),
        Some(data) => format!(
            "windlass {command} --data {}",
            quoted(&data.to_string_lossy())
        ),
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_data_directory_of_this_one() {
        let with = |data| command("runs show r1", data);
        assert_eq!(with(None), "windlass runs show r1");
        assert_eq!(
            with(Some(Path::new("target/data"))),
            "windlass runs show r1 --data target/data"
        );
        assert_eq!(
            with(Some(Path::new("Ann's data; rm *"))),
            r"windlass runs show r1 --data 'Ann'\''s data; rm *'"
        );
    }
}
