//! Paths as they are written in calls. They are relative, forward only, and begin with the name of a
//! root where there are several. Nothing is looked up here.

use windlass_spec::nearest;
use windlass_spec::text::{TextUse, escape_line, is_clean};

/// The longest path that is taken, as systems have it.
const LONGEST: usize = 4096;

/// Where a path points.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Above all roots, where only their names are.
    Top,
    /// Into one root.
    Below {
        /// The position of the root.
        root: usize,
        /// The way from there.
        steps: Steps,
    },
}

/// The way from a root to a file or directory: names, none of which is `.` or `..`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Steps {
    names: Vec<String>,
    /// Whether it ends in a slash, so that only a directory can be meant.
    ends_in_slash: bool,
}

impl Steps {
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether a file may be meant.
    pub(super) fn is_file(&self) -> bool {
        !self.names.is_empty() && !self.ends_in_slash
    }

    /// Whether a file of this name should come into being: one whose name nobody can see or type is
    /// made by mistake, or to deceive.
    pub(super) fn check_for_writing(&self) -> Result<(), String> {
        match self
            .names
            .iter()
            .find(|name| !is_clean(name, TextUse::Name))
        {
            Some(name) => Err(format!(
                "\"{}\" has characters that cannot be seen; take them out",
                escape_line(name, TextUse::Exact)
            )),
            None => Ok(()),
        }
    }
}

impl Place {
    /// Reads a path, given the names of the roots.
    pub(super) fn parse(path: &str, roots: &[&str]) -> Result<Self, String> {
        if path.is_empty() {
            return Err("the path is empty; `.` is the directory itself".to_owned());
        }
        if path.len() > LONGEST {
            return Err(format!(
                "the path has {} bytes; at most {LONGEST} are possible",
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
                "the path {path:?} is absolute; paths are relative to what is allowed, such as `{example}`"
            ));
        }
        if path.split('/').any(|step| step == "..") {
            return Err(format!(
                "the path {path:?} has `..` in it; write the way down from the root"
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
            _ if names.is_empty() => return Ok(Self::Top),
            _ => {
                let first = names.remove(0);
                let position = roots.iter().position(|root| *root == first);
                position.ok_or_else(|| not_a_root(path, &first, roots))?
            }
        };
        Ok(Self::Below {
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
    use super::Place;

    fn steps(path: &str, roots: &[&str]) -> Result<String, String> {
        Place::parse(path, roots).map(|place| match place {
            Place::Top => "top".to_owned(),
            Place::Below { root, steps } => format!("{root}:{}", steps.names().join("/")),
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
    fn absolute_paths_and_steps_up_are_refused_as_written() {
        for path in ["/etc/passwd", "..", "../x", "a/../../x", "a/..", "", "a\0b"] {
            assert!(steps(path, &["x"]).is_err(), "{path:?}");
            assert!(steps(path, &["a", "b"]).is_err(), "{path:?}");
        }
        // These are ordinary, if odd, names.
        assert_eq!(steps("..a/b..", &["x"]).unwrap(), "0:..a/b..");
    }
}
