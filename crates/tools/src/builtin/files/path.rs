//! Paths as calls write them. They are relative, without `..`, and begin with the name of a
//! root if there are several. This module does not access the file system.

use windlass_spec::nearest;
use windlass_spec::text::{TextUse, escape_line, is_clean};

/// The maximum length of a path in bytes, as on most systems.
const MAX_PATH_BYTES: usize = 4096;

/// The target of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathTarget {
    /// The list of roots.
    Roots,
    /// A file or directory in a root.
    InRoot {
        /// The index of the root.
        root: usize,
        /// The path from the root.
        steps: Steps,
    },
}

/// The path from a root to a file or directory: names, none of which is `.` or `..`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Steps {
    names: Vec<String>,
    /// Whether it ends in a slash, so that it must be a directory.
    ends_in_slash: bool,
}

impl Steps {
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it can be a file.
    pub(super) fn is_file(&self) -> bool {
        !self.names.is_empty() && !self.ends_in_slash
    }

    /// Checks that a file of this name may be created. A name with invisible characters is a mistake or
    /// a deception.
    pub(super) fn check_for_writing(&self) -> Result<(), String> {
        match self
            .names
            .iter()
            .find(|name| !is_clean(name, TextUse::Name))
        {
            Some(name) => Err(format!(
                "\"{}\" has invisible characters; remove them",
                escape_line(name, TextUse::Exact)
            )),
            None => Ok(()),
        }
    }
}

impl PathTarget {
    /// Reads a path, given the names of the roots.
    pub(super) fn parse(path: &str, roots: &[&str]) -> Result<Self, String> {
        if path.is_empty() {
            return Err("the path is empty; `.` is the directory itself".to_owned());
        }
        if path.len() > MAX_PATH_BYTES {
            return Err(format!(
                "the path has {} bytes; the limit is {MAX_PATH_BYTES} bytes",
                path.len()
            ));
        }
        if path.contains('\0') {
            return Err(format!("the path {path:?} has a zero character in it"));
        }
        if path.starts_with('/') {
            let example = if roots.len() > 1 {
                format!("{}/plan.txt", roots[0])
            } else {
                "plan.txt".to_owned()
            };
            return Err(format!(
                "the path {path:?} is absolute; write a path relative to a root, such as `{example}`"
            ));
        }
        if path.split('/').any(|step| step == "..") {
            return Err(format!(
                "the path {path:?} has `..` in it; write the path down from the root"
            ));
        }
        let mut names: Vec<String> = path
            .split('/')
            .filter(|step| !step.is_empty() && *step != ".")
            .map(str::to_owned)
            .collect();
        let ends_in_slash = path.ends_with('/') || path.ends_with("/.");
        let root = match roots {
            [_] => 0,
            _ if names.is_empty() => return Ok(Self::Roots),
            _ => {
                let first = names.remove(0);
                let position = roots.iter().position(|root| *root == first);
                position.ok_or_else(|| not_a_root(path, &first, roots))?
            }
        };
        Ok(Self::InRoot {
            root,
            steps: Steps {
                names,
                ends_in_slash,
            },
        })
    }
}

fn not_a_root(path: &str, first: &str, roots: &[&str]) -> String {
    let help = match nearest(first, roots.iter().copied()) {
        Some(root) => format!("did you mean `{root}`?"),
        None => format!("the roots are `{}`", roots.join("`, `")),
    };
    format!("the path {path:?} must begin with the name of a root; {help}")
}

#[cfg(test)]
mod tests {
    use super::PathTarget;

    fn steps(path: &str, roots: &[&str]) -> Result<String, String> {
        PathTarget::parse(path, roots).map(|target| match target {
            PathTarget::Roots => "top".to_owned(),
            PathTarget::InRoot { root, steps } => format!("{root}:{}", steps.names().join("/")),
        })
    }

    #[test]
    fn a_path_is_relative_to_the_only_root() {
        assert_eq!(steps("a//b/./c.txt", &["x"]).unwrap(), "0:a/b/c.txt");
        assert_eq!(steps(".", &["x"]).unwrap(), "0:");
        assert_eq!(steps("x/y", &["x"]).unwrap(), "0:x/y");
    }

    #[test]
    fn with_several_roots_a_path_begins_with_the_name_of_one() {
        let roots = ["notes", "data"];
        assert_eq!(steps("data/a", &roots).unwrap(), "1:a");
        assert_eq!(steps(".", &roots).unwrap(), "top");
        assert_eq!(
            steps("note/a", &roots).unwrap_err(),
            "the path \"note/a\" must begin with the name of a root; did you mean `notes`?"
        );
    }

    #[test]
    fn absolute_paths_and_parent_segments_are_refused() {
        for path in ["/etc/passwd", "..", "../x", "a/../../x", "a/..", "", "a\0b"] {
            assert!(steps(path, &["x"]).is_err(), "{path:?}");
            assert!(steps(path, &["a", "b"]).is_err(), "{path:?}");
        }
        // These names are unusual but valid.
        assert_eq!(steps("..a/b..", &["x"]).unwrap(), "0:..a/b..");
    }
}
