//! Assesses `sed` scripts, which can write files and run commands.

/// Whether every script that `sed` is given only substitutes, prints, deletes lines or quits.
pub(super) fn is_plain(rest: &[String]) -> bool {
    let is_short = |word: &str| word.starts_with('-') && !word.starts_with("--");
    // A script attached to its option, or in a file, is not checked.
    let attached = |word: &String| {
        is_short(word) && word.contains(['e', 'f']) && !word.ends_with('e')
            || word.starts_with("--e")
            || word.starts_with("--f")
    };
    if rest.iter().any(attached) {
        return false;
    }
    let mut programs: Vec<&String> = rest
        .windows(2)
        .filter(|pair| is_short(&pair[0]) && pair[0].ends_with('e'))
        .map(|pair| &pair[1])
        .collect();
    if programs.is_empty() {
        programs.extend(rest.iter().find(|word| !word.starts_with('-')));
    }
    !programs.is_empty()
        && programs
            .into_iter()
            .all(|program| is_plain_program(program))
}

/// Whether a script of `sed` only substitutes, prints, deletes lines or quits. Other scripts may write
/// files and run commands.
fn is_plain_program(script: &str) -> bool {
    script.split([';', '\n']).map(str::trim).all(|part| {
        let body = part.trim_start_matches(|c: char| c.is_ascii_digit() || ",$!~ ".contains(c));
        let body = match body.strip_prefix('/') {
            Some(rest) => rest.split_once('/').map_or("?", |(_, after)| after),
            None => body,
        };
        let mut chars = body.chars();
        match (chars.next(), chars.next()) {
            (None, _) => true,
            (Some('p' | 'd' | 'q' | '='), None) => true,
            (Some('s'), Some(delimiter)) if !delimiter.is_alphanumeric() => {
                let parts: Vec<&str> = body.splitn(5, delimiter).collect();
                let plain_flags = |flags: &str| {
                    flags
                        .chars()
                        .all(|c| "giIp".contains(c) || c.is_ascii_digit())
                };
                !body.contains('\\') && matches!(parts[..], [_, _, _, flags] if plain_flags(flags))
            }
            _ => false,
        }
    })
}
