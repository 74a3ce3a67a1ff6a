//! The table of character classes: the characters that are invisible or change the display of others, and
//! the neighbours that make such a character part of ordinary writing.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Why the look of a character is misleading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CharacterClass {
    /// A control character (C0, DEL, C1), such as one that begins a command to a terminal. Line feed and
    /// tab are of this class; whether they pass depends on the use.
    Control,
    /// U+2028 and U+2029, which break lines where only some programs expect it.
    LineSeparator,
    /// A mark, embedding, override or isolate that changes the order in which text is shown.
    Bidirectional,
    /// A character without width, or a letter or mark that shows nothing.
    ZeroWidth,
    /// Another invisible character that shapes text, such as the soft hyphen.
    Format,
    /// A character of the block from U+E0000, which can encode invisible text.
    Tag,
    /// A variation selector. After anything it cannot select a form of, it is data.
    VariationSelector,
    /// A private-use character or a noncharacter: it has no agreed meaning or shape.
    PrivateUse,
    /// A code point without a character in the supported version of Unicode.
    Unassigned,
    /// A space that looks like U+0020 and is another character.
    Space,
    /// A sign that encloses the digits after it: visible, although its Unicode category is `Format`.
    NumberSign,
}

impl CharacterClass {
    /// The name of the class, in the plural, for messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control characters",
            Self::LineSeparator => "line separators",
            Self::Bidirectional => "characters that change the text direction",
            Self::ZeroWidth => "zero-width characters",
            Self::Format => "invisible characters",
            Self::Tag => "text hidden in tag characters",
            Self::VariationSelector => "variation selectors without effect",
            Self::PrivateUse => "private-use characters or noncharacters",
            Self::Unassigned => "unassigned code points",
            Self::Space => "unusual spaces",
            Self::NumberSign => "signs that enclose digits",
        }
    }
}

impl std::fmt::Display for CharacterClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The class of a character, independent of its neighbours; `None` for ordinary characters.
#[must_use]
pub fn class_of(c: char) -> Option<CharacterClass> {
    use CharacterClass::{
        Bidirectional, Control, Format, LineSeparator, NumberSign, PrivateUse, Space, Tag,
        Unassigned, VariationSelector, ZeroWidth,
    };
    // Fast path: printable ASCII.
    if matches!(c, ' '..='~') {
        return None;
    }
    match c {
        _ if c.is_control() => Some(Control),
        '\u{2028}' | '\u{2029}' => Some(LineSeparator),
        '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}' => Some(ZeroWidth),
        // Letters that are blank, and marks that show nothing.
        '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{2800}'
        | '\u{3164}' | '\u{FFA0}' => Some(ZeroWidth),
        '\u{061C}'
        | '\u{200E}'
        | '\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2066}'..='\u{2069}' => Some(Bidirectional),
        '\u{180B}'..='\u{180D}'
        | '\u{180F}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{E0100}'..='\u{E01EF}' => Some(VariationSelector),
        // The whole block, including its unassigned code points.
        '\u{E0000}'..='\u{E0FFF}' => Some(Tag),
        '\u{2065}' | '\u{FFF0}'..='\u{FFF8}' => Some(Format),
        '\u{0600}'..='\u{0605}'
        | '\u{06DD}'
        | '\u{070F}'
        | '\u{0890}'
        | '\u{0891}'
        | '\u{08E2}'
        | '\u{110BD}'
        | '\u{110CD}' => Some(NumberSign),
        // Noncharacters.
        '\u{FDD0}'..='\u{FDEF}' => Some(PrivateUse),
        _ if u32::from(c) & 0xFFFE == 0xFFFE => Some(PrivateUse),
        _ => match get_general_category(c) {
            GeneralCategory::Format => Some(Format),
            GeneralCategory::PrivateUse | GeneralCategory::Surrogate => Some(PrivateUse),
            GeneralCategory::Unassigned => Some(Unassigned),
            GeneralCategory::SpaceSeparator => Some(Space),
            _ => None,
        },
    }
}

/// Whether a character is a pictograph, which others can be joined to.
pub(super) fn is_pictograph(c: char) -> bool {
    matches!(
        c,
        '\u{A9}' | '\u{AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21FF}'
        | '\u{2300}'..='\u{23FF}'
        | '\u{24C2}'
        | '\u{25A0}'..='\u{27BF}'
        | '\u{2934}' | '\u{2935}'
        | '\u{2B00}'..='\u{2BFF}'
        | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}'
        | '\u{1F000}'..='\u{1FAFF}'
    )
}

/// Whether a character can begin a keycap.
pub(super) fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// The combining character that closes a keycap.
pub(super) const KEYCAP: char = '\u{20E3}';

/// Whether a character is of a script whose letters join, so that joiners are part of its spelling.
pub(super) fn joins(c: char) -> bool {
    let is_of_script = matches!(
        c,
        // Arabic, Syriac, Thaana, N'Ko, Mandaic and their extensions.
        '\u{0620}'..='\u{06FF}' | '\u{0710}'..='\u{07FA}' | '\u{0840}'..='\u{08FF}'
        // The Indic scripts from Devanagari to Sinhala, Tibetan, Myanmar, Khmer.
        | '\u{0900}'..='\u{0DFF}' | '\u{0F00}'..='\u{109F}' | '\u{1780}'..='\u{17DD}'
        | '\u{1820}'..='\u{18AA}'
        // Balinese, Javanese, more of Devanagari and Myanmar, presentation forms, Adlam, later Indic ones.
        | '\u{1B00}'..='\u{1BFF}' | '\u{A8E0}'..='\u{A8FF}' | '\u{A980}'..='\u{A9FF}'
        | '\u{AA60}'..='\u{AA7F}' | '\u{FB50}'..='\u{FDCF}' | '\u{FE70}'..='\u{FEFC}'
        | '\u{11000}'..='\u{11FFF}' | '\u{1E900}'..='\u{1E95F}'
    );
    is_of_script && is_letter_or_mark(c)
}

/// Whether a character is a letter that is written from right to left.
pub(super) fn is_right_to_left(c: char) -> bool {
    let is_of_script = matches!(
        c,
        '\u{0590}'..='\u{08FF}'
            | '\u{FB1D}'..='\u{FDCF}'
            | '\u{FE70}'..='\u{FEFC}'
            | '\u{10800}'..='\u{10FFF}'
            | '\u{1E800}'..='\u{1EFFF}'
    );
    is_of_script && is_letter_or_mark(c)
}

fn is_letter_or_mark(c: char) -> bool {
    use GeneralCategory::{LowercaseLetter, UppercaseLetter};
    use GeneralCategory::{ModifierLetter, NonspacingMark, OtherLetter, SpacingMark};
    matches!(
        get_general_category(c),
        OtherLetter
            | ModifierLetter
            | NonspacingMark
            | SpacingMark
            | LowercaseLetter
            | UppercaseLetter
    )
}

pub(super) fn is_mongolian(c: char) -> bool {
    matches!(c, '\u{1820}'..='\u{18AA}')
}

pub(super) fn is_ideograph(c: char) -> bool {
    matches!(
        c,
        '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFD}'
    )
}

/// Whether a character is a part of a Korean syllable; a blank one next to it is a placeholder.
pub(super) fn is_jamo(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{115E}' | '\u{1161}'..='\u{11FF}' | '\u{A960}'..='\u{A97C}' | '\u{D7B0}'..='\u{D7FB}')
}

pub(super) fn is_braille(c: char) -> bool {
    matches!(c, '\u{2801}'..='\u{28FF}')
}

/// The flag that tag characters can follow.
pub(super) const FLAG: char = '\u{1F3F4}';

/// The tags of the flags in use, each with the tag that ends it.
pub(super) const FLAGS: [&str; 3] = [
    "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// The ASCII character that a tag character encodes.
pub(super) fn tag_byte(c: char) -> Option<u8> {
    match c {
        '\u{E0020}'..='\u{E007E}' => u8::try_from(u32::from(c) - 0xE0000).ok(),
        _ => None,
    }
}

/// The byte that a variation selector encodes, if it is used to hide bytes.
pub(super) fn selector_byte(c: char) -> Option<u8> {
    match c {
        '\u{FE00}'..='\u{FE0F}' => u8::try_from(u32::from(c) - 0xFE00).ok(),
        '\u{E0100}'..='\u{E01EF}' => u8::try_from(u32::from(c) - 0xE0100 + 16).ok(),
        _ => None,
    }
}

/// The short name of a control character that has one.
pub(super) fn control_name(c: char) -> Option<&'static str> {
    const NAMES: [&str; 32] = [
        "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF",
        "CR", "SO", "SI", "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM",
        "SUB", "ESC", "FS", "GS", "RS", "US",
    ];
    match c {
        '\u{7F}' => Some("DEL"),
        '\u{9B}' => Some("CSI"),
        _ => NAMES.get(usize::try_from(u32::from(c)).ok()?).copied(),
    }
}
