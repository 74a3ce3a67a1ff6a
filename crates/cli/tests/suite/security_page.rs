//! The security guide names tests that exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of all test functions of the workspace.
fn tests() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut tests = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            let is_attribute = line.starts_with("#[");
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let line = line.strip_prefix("async ").unwrap_or(line);
            if let (true, Some(rest)) = (is_test, line.strip_prefix("fn ")) {
                tests.extend(rest.split('(').next().map(str::to_owned));
            }
            is_test &= is_attribute || line.starts_with("//");
        }
    }
    tests
}

#[test]
fn every_owasp_risk_is_covered_by_tests_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let tests = tests();
    assert!(tests.contains("every_owasp_risk_is_covered_by_tests_that_exist"));
    for number in 1..=10 {
        let risk = format!("| ASI{number:02} ");
        let row = page.lines().find(|line| line.starts_with(&risk));
        let row = row.unwrap_or_else(|| panic!("{risk}has no row"));
        let cells: Vec<&str> = row.split('|').collect();
        let named: Vec<&str> = cells[3].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{row}");
        for name in named {
            assert!(tests.contains(name), "there is no test `{name}`: {row}");
        }
    }
}
