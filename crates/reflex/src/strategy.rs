//! Tool sequences from the strategies in a prompt. A strategy is prose. Only the order in which it names the
//! offered tools is used. Pitfalls and observations have headings of their own and are never followed, whatever
//! their words.

use std::collections::HashSet;

use windlass_core::run::{
    INTENT_HEADING, OBSERVATIONS_HEADING, PITFALLS_HEADING, STRATEGIES_HEADING,
};

/// The tool sequences of the strategies in a system message, as positions of the offered tools.
pub(crate) fn sequences(system: &str, tools: &[&str]) -> Vec<Vec<usize>> {
    let lines = system.lines().map(str::trim);
    lines
        .skip_while(|line| *line != STRATEGIES_HEADING)
        .skip(1)
        .map_while(|line| line.strip_prefix("- "))
        .take(20)
        .filter(|line| !advises_against(line))
        .map(|line| sequence(line, tools))
        .filter(|sequence| !sequence.is_empty())
        .collect()
}

/// The instruction without the strategies, pitfalls and observations below it.
pub(crate) fn instruction(system: &str) -> &str {
    let headings = [
        STRATEGIES_HEADING,
        PITFALLS_HEADING,
        OBSERVATIONS_HEADING,
        INTENT_HEADING,
    ];
    let first = headings.iter().filter_map(|heading| system.find(heading));
    first.min().map_or(system, |end| &system[..end])
}

fn advises_against(line: &str) -> bool {
    let lower = line.to_lowercase();
    [
        "avoid",
        "do not use",
        "don't use",
        "never ",
        "failed when",
        "does not work",
        "anti-pattern",
    ]
    .iter()
    .any(|cue| lower.contains(cue))
}

/// The tools that a line names, in order, each once.
fn sequence(line: &str, tools: &[&str]) -> Vec<usize> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (index, tool) in tools
        .iter()
        .enumerate()
        .filter(|(_, tool)| !tool.is_empty())
    {
        for (at, _) in line.match_indices(tool) {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let before = line[..at].chars().next_back();
            let after = line[at + tool.len()..].chars().next();
            if before.is_none_or(|c| !is_part(c) && c != '.') && after.is_none_or(|c| !is_part(c)) {
                found.push((at, index));
            }
        }
    }
    found.sort_unstable();
    let mut seen = HashSet::new();
    found
        .into_iter()
        .map(|(_, index)| index)
        .filter(|index| seen.insert(*index))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_follow_the_order_of_names() {
        let system = format!(
            "You help.\n\n{STRATEGIES_HEADING}\n- For trips: first `find_hotel`, then book_room -> send_mail\n- Avoid find_hotel for day trips\n- Be kind"
        );
        assert_eq!(
            sequences(&system, &["send_mail", "book_room", "find_hotel", "book"]),
            [vec![2, 1, 0]]
        );
        assert_eq!(instruction(&system).trim(), "You help.");
    }

    #[test]
    fn only_lines_below_the_heading_of_strategies_are_followed() {
        let tools = ["search_db", "filter"];
        for heading in [PITFALLS_HEADING, OBSERVATIONS_HEADING] {
            let below = format!("{heading}\n- First `search_db`, then `filter` answers this.");
            let alone = format!("You help.\n\n{below}");
            assert!(sequences(&alone, &tools).is_empty(), "{heading}");
            assert_eq!(instruction(&alone).trim(), "You help.");
            let after = format!("You help.\n\n{STRATEGIES_HEADING}\n- `filter`\n\n{below}");
            assert_eq!(sequences(&after, &tools), [vec![1]]);
            assert_eq!(instruction(&after).trim(), "You help.");
        }
    }

    #[test]
    fn prompts_without_strategies_have_none() {
        assert!(sequences("You use find_hotel.", &["find_hotel"]).is_empty());
    }
}
