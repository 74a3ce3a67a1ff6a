//! Checks what the system gives to isolate the programs of tools and servers.

use windlass_spawn::{Hiding, Support};
use windlass_spec::IsolationLevel;

use super::HealthFinding;
use super::examination::Examination;

const ABOUT: &str = "isolation";

/// How mounts and networks of programs are allowed.
const ALLOW_NAMESPACES: &str = "allow user namespaces: `user.max_user_namespaces`, `kernel.unprivileged_userns_clone`, \
                                `kernel.apparmor_restrict_unprivileged_userns`, or the seccomp profile of the container";

impl Examination<'_> {
    pub(super) fn isolation(&mut self) {
        let level = self.configured.configuration.isolation();
        for finding in findings(level, Support::of_kernel()) {
            self.add(finding);
        }
    }
}

fn findings(level: IsolationLevel, support: Support) -> Vec<HealthFinding> {
    if level == IsolationLevel::Off {
        return vec![HealthFinding::warning(
            ABOUT,
            "it is off: programs of tools and servers can reach keys and data",
            "remove `isolation` from windlass.toml",
        )];
    }
    let refused = |is_refused: bool| match is_refused {
        true => "do not start",
        false => "start without it",
    };
    let missing = |found: String, fix: &str, is_refused: bool| match is_refused {
        true => HealthFinding::error(ABOUT, found, fix),
        false => HealthFinding::warning(ABOUT, found, fix),
    };
    let is_declared = level >= IsolationLevel::Declared;
    let hiding = match support.hiding {
        Hiding::Impossible => missing(
            "keys, data and terminals are in the reach of programs: the system allows no mounts"
                .to_owned(),
            ALLOW_NAMESPACES,
            level == IsolationLevel::Strict,
        ),
        Hiding::AsRoot => HealthFinding::ok(
            ABOUT,
            "keys, data and terminals are covered for programs; they run as root, so use an ordinary user for more",
        ),
        Hiding::InUserNamespace => {
            HealthFinding::ok(ABOUT, "keys, data and terminals are covered for programs")
        }
    };
    let files = match support.restricts_files() {
        true => HealthFinding::ok(
            ABOUT,
            format!(
                "Landlock {} restricts programs to the files they declare",
                support.landlock
            ),
        ),
        false => HealthFinding::warning(
            ABOUT,
            format!(
                "programs that declare `files` {}: they need Landlock {}, and the system has {}",
                refused(is_declared),
                Support::NEEDED_LANDLOCK,
                support.landlock
            ),
            "use Linux 6.2 or later with `lsm=landlock`, or set `isolation = \"best_effort\"`",
        ),
    };
    let network = match support.offline {
        true => HealthFinding::ok(ABOUT, "programs that declare `offline` get no network"),
        false => HealthFinding::warning(
            ABOUT,
            format!(
                "programs that declare `offline` {}: the system allows no network namespaces",
                refused(is_declared)
            ),
            ALLOW_NAMESPACES,
        ),
    };
    vec![hiding, files, network]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::FindingStatus;

    fn statuses(level: IsolationLevel, support: Support) -> Vec<FindingStatus> {
        let findings = findings(level, support);
        findings.iter().map(|finding| finding.status).collect()
    }

    #[test]
    fn what_the_system_does_not_give_is_reported() {
        use FindingStatus::{Error, Ok, Warning};
        let nothing = Support {
            hiding: Hiding::Impossible,
            landlock: 2,
            offline: false,
        };
        let everything = Support {
            hiding: Hiding::InUserNamespace,
            landlock: 3,
            offline: true,
        };
        for (level, expected) in [
            (IsolationLevel::Off, vec![Warning]),
            (IsolationLevel::BestEffort, vec![Warning; 3]),
            (IsolationLevel::Declared, vec![Warning; 3]),
            (IsolationLevel::Strict, vec![Error, Warning, Warning]),
        ] {
            assert_eq!(statuses(level, nothing), expected, "{level:?}");
            if level != IsolationLevel::Off {
                assert_eq!(statuses(level, everything), [Ok, Ok, Ok], "{level:?}");
            }
        }
        let texts = findings(IsolationLevel::Declared, nothing);
        assert!(texts[1].found.contains("do not start"), "{texts:?}");
        let texts = findings(IsolationLevel::BestEffort, nothing);
        assert!(texts[1].found.contains("start without it"), "{texts:?}");
    }
}
