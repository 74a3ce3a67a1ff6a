//! Input of any size and depth: no stack overflow, and time linear in the length.

use std::time::Duration;
use windlass_gram::{format, parse, print};

/// Worst-case texts for parsers that recurse or scan the rest of the text repeatedly.
fn worst_case_texts(size: usize) -> Vec<(&'static str, String)> {
    vec![
        (
            "nested brackets",
            "[|".repeat(size) + "a" + &"]".repeat(size),
        ),
        ("unclosed brackets", "[a|".repeat(size)),
        ("closing brackets", "]".repeat(size)),
        ("unclosed nodes", "(".repeat(size)),
        ("unclosed records", "({a:".repeat(size)),
        ("nested values", "({a:".to_owned() + &"[".repeat(size)),
        ("unclosed comments", "({a:\"/**\"})".repeat(size)),
        ("comment openers", "/**".repeat(size)),
        ("unclosed quotes", "\"".repeat(size)),
        ("quotes and lines", "({a:\"\n".repeat(size)),
        ("unclosed fences", "({a:```\n`` ".repeat(size)),
        ("comments in fences", "({a:```\n/**```*/".repeat(size)),
        ("slashes in quotes", "({a:\"//\\q".repeat(size)),
        ("long path", "(a)-->".repeat(size) + "(b)"),
        ("long symbol", "(".to_owned() + &"a".repeat(size) + ")"),
        ("many labels", "(a".to_owned() + &":L".repeat(size) + ")"),
        ("commas", ",".repeat(size)),
        ("annotations", "@k(1) ".repeat(size) + "(a)"),
        (
            "annotations in a bracket",
            "[a|".to_owned() + &"@k(1)".repeat(size),
        ),
        ("comments", "// x\n".repeat(size)),
        ("NULs", "(a)\0".repeat(size)),
        ("escapes", "({a:\"".to_owned() + &"\\q".repeat(size)),
        ("numbers", "({a:1.".repeat(size)),
        ("dashes", "(a)".to_owned() + &"-".repeat(size)),
        ("arrows", "(a)".to_owned() + &"->".repeat(size)),
        ("more arrows", "(a)-".to_owned() + &"<-->".repeat(size)),
        ("at signs", "@".repeat(size)),
        ("colons", "(a".to_owned() + &":".repeat(size)),
        ("annotation colons", "@@".to_owned() + &":".repeat(size)),
        ("dots", "({a:[".to_owned() + &"0...".repeat(size)),
        ("words", "a ".repeat(size)),
        ("glued words", "(a)".to_owned() + &"a".repeat(size)),
        ("texts over lines", "({a:\"x\n".repeat(size)),
        ("question marks", "(a::Text".to_owned() + &"?".repeat(size)),
    ]
}

#[test]
fn a_hundred_thousand_levels_do_not_overflow_the_stack() {
    for (name, text) in worst_case_texts(100_000) {
        let tree = parse(&text);
        assert!(print(&tree) == text, "{name}");
        if let Some(formatted) = format(&tree) {
            assert!(parse(&formatted).is_valid(), "{name}");
        }
    }
}

/// The CPU time of this thread. Wall-clock time would also count other processes on a busy machine.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn no_text_takes_quadratic_time() {
    let measure = |size| -> Vec<(&str, Duration)> {
        worst_case_texts(size)
            .into_iter()
            .map(|(name, text)| {
                let start = thread_cpu_time();
                let tree = parse(&text);
                let _ = format(&tree);
                (name, thread_cpu_time() - start)
            })
            .collect()
    };
    // Ten times the text may take forty times as long on a busy machine, not a hundred times.
    let small = measure(20_000);
    let large = measure(200_000);
    for ((name, small), (_, large)) in small.into_iter().zip(large) {
        let bound = small.max(Duration::from_millis(3)) * 40;
        assert!(large < bound, "{name}: {small:?} became {large:?}");
    }
}
