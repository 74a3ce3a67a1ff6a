//! The rules of a site for crawlers in its `robots.txt` (RFC 9309): disallowed
//! paths, and the delay between requests.

use std::time::Duration;

/// The rules of a site for this program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Robots {
    rules: Vec<Rule>,
    /// The delay between two requests, if the site sets one.
    pub(super) delay: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    allows: bool,
    path: String,
}

/// The product token of this program in `robots.txt`.
const OWN_NAME: &str = "windlass";

/// The maximum number of rules that are read.
const MAX_RULES: usize = 2000;

/// The maximum supported delay. Of a site with a longer delay, only the first page is read.
pub(super) const MAX_DELAY: Duration = Duration::from_secs(10);

impl Robots {
    /// Parses the file: the groups for this program if there are any, otherwise those for all.
    pub(super) fn parse(text: &str) -> Self {
        let (mut own, mut all) = (None, Self::default());
        let (mut for_own, mut for_all, mut in_rules) = (false, false, true);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if in_rules {
                        (for_own, for_all, in_rules) = (false, false, false);
                    }
                    let agent = value.to_ascii_lowercase();
                    for_all |= agent == "*";
                    if agent.split('/').next() == Some(OWN_NAME) {
                        for_own = true;
                        own.get_or_insert_with(Self::default);
                    }
                }
                key => {
                    in_rules = true;
                    if for_all {
                        all.take(key, value);
                    }
                    if for_own && let Some(own) = &mut own {
                        own.take(key, value);
                    }
                }
            }
        }
        own.unwrap_or(all)
    }

    fn take(&mut self, key: &str, value: &str) {
        match key {
            "allow" | "disallow" if !value.is_empty() && self.rules.len() < MAX_RULES => {
                self.rules.push(Rule {
                    allows: key == "allow",
                    path: value.to_owned(),
                });
            }
            "crawl-delay" => {
                let seconds = value.parse().ok().filter(|&seconds: &f64| seconds >= 0.0);
                self.delay = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            }
            _ => {}
        }
    }

    /// Whether this path, with its query, is allowed. The longest matching rule decides; of two equally
    /// long ones the one that allows.
    pub(super) fn allows(&self, path: &str) -> bool {
        let matching = self.rules.iter().filter(|rule| rule.matches(path));
        matching
            .max_by_key(|rule| (rule.path.len(), rule.allows))
            .is_none_or(|rule| rule.allows)
    }
}

impl Rule {
    /// Whether the rule matches the beginning of the path. `*` matches anything, a final `$` the end.
    fn matches(&self, path: &str) -> bool {
        let (pattern, to_the_end) = match self.path.strip_suffix('$') {
            Some(pattern) => (pattern, true),
            None => (self.path.as_str(), false),
        };
        let mut parts = pattern.split('*');
        let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else {
            return false;
        };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else {
            return !to_the_end || rest.is_empty();
        };
        for part in middle {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        if to_the_end {
            rest.ends_with(last)
        } else {
            rest.contains(last)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Robots;

    #[test]
    fn the_longest_rule_decides() {
        let robots =
            Robots::parse("User-agent: *\nDisallow: /a\nAllow: /a/open # yes\nDisallow:\n");
        assert!(!robots.allows("/a"));
        assert!(!robots.allows("/abc"));
        assert!(robots.allows("/a/open/x"));
        assert!(robots.allows("/b"));
        assert!(Robots::parse("").allows("/"));
    }

    #[test]
    fn a_group_for_this_program_replaces_the_group_for_all() {
        let text = "User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: Windlass/1\n\
                    Disallow: /private\nCrawl-delay: 2.5\n";
        let robots = Robots::parse(text);
        assert!(robots.allows("/"));
        assert!(!robots.allows("/private/x"));
        assert_eq!(robots.delay, Some(Duration::from_millis(2500)));
    }

    #[test]
    fn wildcards_and_end_anchors_are_supported() {
        let robots = Robots::parse("User-agent: *\nDisallow: /*.pdf$\nDisallow: /x*y*z\n");
        assert!(!robots.allows("/d/a.pdf"));
        assert!(robots.allows("/d/a.pdf?x"));
        assert!(!robots.allows("/x1y2z3"));
        assert!(robots.allows("/x1z2y3"));
    }
}
