//! Generates texts for tests: gram that is valid by construction, and mutations of it.

/// A small generator of pseudo-random numbers (SplitMix64), so that a failing case can be reproduced
/// from its seed on any machine.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}

const NAMES: &[&str] = &[
    "a",
    "b1",
    "_x",
    "true",
    "false",
    "null",
    "a-b",
    "x@y.z",
    "a..b",
    "`quoted name`",
    "``",
    "`a\\`b`",
    "7",
    "-3",
    "0",
    "Agent",
    "Tool",
];
const WORDS: &[&str] = &["L", "Person", "a.b", "`two words`", "true", "_"];
const KEYS: &[&str] = &["k", "name", "`odd key`", "\"dq\"", "true", "x-y"];
const SCALARS: &[&str] = &[
    "1",
    "-1",
    "0",
    "3.14",
    "-0.5",
    "0xFF",
    "017",
    "12kg",
    "-5kg",
    "0xZZ",
    "true",
    "false",
    "truely",
    "sym",
    "a.b",
    "'single'",
    "\"double\"",
    "`back`",
    "\"\"",
    "''",
    "``",
    "\"a\\\"b\\n\"",
    "'it\\'s'",
    "date`2024-01-15`",
    "url `https://e.org`",
    "```\nfenced `x` \n```",
    "```md\n# t\n```",
    "1..5",
    "1kg..5kg",
    "3...",
    "...9",
    "0.5..1.5",
    "\"http://x\"",
    "\"é ✓\"",
    "```\n```",
];
const BLANKS: &[&str] = &[
    "",
    "",
    "",
    " ",
    " ",
    "\n",
    "\t",
    "\r\n",
    " // note\n",
    " /** doc */ ",
];
const HALVES: &[(&str, &str)] = &[
    ("-", "-"),
    ("-", "->"),
    ("<-", "-"),
    ("<-", "->"),
    ("=", "="),
    ("=", "=>"),
    ("<=", "="),
    ("<=", "=>"),
    ("~", "~"),
    ("~", "~>"),
    ("<~", "~"),
    ("<~", "~>"),
];

/// Writes valid gram at random.
pub(super) struct Writer {
    random: Random,
    text: String,
    /// How many more brackets may be written.
    budget: usize,
}

impl Writer {
    pub(super) fn document(seed: u64) -> String {
        let mut random = Random::new(seed);
        let budget = 1 + random.below(40);
        let mut writer = Self {
            random,
            text: String::new(),
            budget,
        };
        if writer.random.chance(15) {
            writer.record();
        }
        for _ in 0..writer.random.below(5) {
            writer.blank();
            match writer.random.below(4) {
                0 => writer.annotated(),
                1 => writer.path(),
                _ => writer.bracket(),
            }
        }
        writer.blank();
        writer.text
    }

    fn put(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.blank();
    }

    fn put_one(&mut self, pieces: &[&'static str]) {
        let piece = self.random.pick(pieces);
        self.put(piece);
    }

    fn blank(&mut self) {
        let blank = self.random.pick(BLANKS);
        self.text.push_str(blank);
    }

    fn annotated(&mut self) {
        let identified = self.random.chance(50);
        if identified {
            self.put("@@");
            let with_name = self.random.chance(70);
            if with_name {
                self.put_one(NAMES);
            }
            if !with_name || self.random.chance(50) {
                self.labels();
            }
            self.text.push(' ');
        }
        let properties = self.random.below(3) + usize::from(!identified);
        for _ in 0..properties {
            self.put("@");
            self.put("key");
            self.put("(");
            self.value();
            self.put(")");
        }
        if self.random.chance(50) {
            self.path();
        } else {
            self.bracket();
        }
    }

    fn bracket(&mut self) {
        self.budget = self.budget.saturating_sub(1);
        self.put("[");
        self.subject();
        if self.budget > 0 && self.random.chance(60) {
            self.put("|");
            let count = 1 + self.random.below(3);
            for index in 0..count {
                if index > 0 {
                    self.put(",");
                }
                match self.random.below(3) {
                    0 if self.budget > 0 => self.bracket(),
                    1 => self.path(),
                    _ => self.put_one(NAMES),
                }
            }
        }
        self.put("]");
    }

    fn path(&mut self) {
        self.node();
        for _ in 0..self.random.below(3) {
            let (left, right) = HALVES[self.random.below(HALVES.len())];
            self.put(left);
            if self.random.chance(40) {
                self.put("[");
                self.subject();
                self.put("]");
            }
            self.put(right);
            self.node();
        }
    }

    fn node(&mut self) {
        self.put("(");
        self.subject();
        self.put(")");
    }

    fn subject(&mut self) {
        if self.random.chance(70) {
            self.put_one(NAMES);
        }
        if self.random.chance(40) {
            self.labels();
        }
        if self.random.chance(30) {
            self.record();
        }
    }

    fn labels(&mut self) {
        for _ in 0..1 + self.random.below(2) {
            self.put_one(&[":", "::"]);
            self.put_one(WORDS);
        }
    }

    fn record(&mut self) {
        self.put("{");
        for index in 0..self.random.below(4) {
            if index > 0 {
                self.put(",");
            }
            self.put_one(KEYS);
            self.put_one(&[":", ":", "::"]);
            self.value();
        }
        self.put("}");
    }

    fn value(&mut self) {
        match self.random.below(8) {
            0 => self.array(),
            1 => {
                self.put("{");
                for index in 0..self.random.below(3) {
                    if index > 0 {
                        self.put(",");
                    }
                    self.put_one(KEYS);
                    self.put(":");
                    if self.random.chance(20) {
                        self.array();
                    } else {
                        self.put_one(SCALARS);
                    }
                }
                self.put("}");
            }
            _ => self.put_one(SCALARS),
        }
    }

    fn array(&mut self) {
        self.put("[");
        for index in 0..1 + self.random.below(3) {
            if index > 0 {
                self.put(",");
            }
            self.put_one(SCALARS);
        }
        self.put("]");
    }
}

const PIECES: &[&str] = &[
    "(", ")", "[", "]", "{", "}", "|", ",", ":", "::", "@", "@@", "-", "->", "--", "<-", "=", "=>",
    "<=", "~", "~>", "<~", "<", ">", ".", "..", "...", "`", "```", "\"", "'", "\\", "/", "//",
    "/**", "*/", "/*", "*", "\n", " ", "\t", "\r", "\r\n", "0", "1", "08", "0x", "e", "x", "a",
    "true", "kg", "é", "\0", "\u{feff}", "\u{a0}", "\u{2028}", "\\u", "\\n", "\\\"", "\\`", "\\'",
    "1.5", "2.5kg", "-", "_", "//\"", "\"//", "\"/**", "`//", "'/**", "```\n//", "```\n/**",
    "```x", "``` ", "\n```", "\x0b", "\x0c", "\x01", "#", ";", "+", "%", "\"\"", "``",
];

/// Changes a text in up to four places.
pub(super) fn mutate(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(4) {
        let at = random.below(chars.len() + 1);
        match random.below(6) {
            0 if at < chars.len() => {
                chars.remove(at);
            }
            1 => {
                let end = (at + 1 + random.below(6)).min(chars.len());
                chars.drain(at.min(end)..end);
            }
            2 => {
                let end = (at + 1 + random.below(8)).min(chars.len());
                let copy: Vec<char> = chars[at.min(end)..end].to_vec();
                let to = random.below(chars.len() + 1);
                chars.splice(to..to, copy);
            }
            3 if at < chars.len() => {
                let piece = random.pick(PIECES);
                chars.splice(at..=at, piece.chars());
            }
            4 => chars.truncate(at.max(1)),
            _ => {
                let piece = random.pick(PIECES);
                chars.splice(at..at, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

/// A text of random pieces, without regard to the grammar.
pub(super) fn random_pieces(random: &mut Random) -> String {
    (0..random.below(12)).map(|_| random.pick(PIECES)).collect()
}
