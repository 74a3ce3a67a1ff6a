//! The gram in the guides is valid and formatted.

use std::path::Path;

use super::program::TestProject;

/// Returns the code blocks of a page: the language of the fence, and the code.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        // A gram text may contain fences, which have no language.
        if let Some(language) = line
            .strip_prefix("```")
            .filter(|language| !language.is_empty())
        {
            let mut code = String::new();
            let mut in_fence = false;
            for line in lines.by_ref() {
                if line == "```" && !in_fence {
                    break;
                }
                if line.contains("```") {
                    in_fence = !in_fence;
                }
                code.push_str(line);
                code.push('\n');
            }
            blocks.push((language.to_owned(), code));
        }
    }
    blocks
}

#[test]
fn every_gram_block_in_the_guides_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for page in ["README.md", "docs/notation.md", "docs/agent-files.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for (language, code) in blocks(&text) {
            let arguments: &[&str] = match language.as_str() {
                "gram" => &["check", "-"],
                "gram syntax" => &["check", "--syntax-only", "-"],
                _ => continue,
            };
            count += 1;
            let output = TestProject::new().run_with_input(arguments, &code);
            let is_clean = output.ends_with("--- exit code 0\n") && !output.contains("--- stderr");
            assert!(is_clean, "{page}:\n{code}\n{output}");
        }
    }
    assert!(count >= 6, "only {count} blocks were found");
}
