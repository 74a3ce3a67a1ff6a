//! Tokens: the smallest pieces of a text. The tokens of a tree tile its source without gaps, which
//! is what makes the tree lossless. A token therefore stores only its kind and where it starts.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TokenKind {
    /// Blanks and line breaks, and a byte order mark at the very start.
    Whitespace,
    /// `// to the end of the line`
    Comment,
    /// `/** between these */`
    DocComment,
    /// `[`
    BracketOpen,
    /// `]`
    BracketClose,
    /// `(`
    ParenOpen,
    /// `)`
    ParenClose,
    /// `{`
    BraceOpen,
    /// `}`
    BraceClose,
    /// `|`
    Pipe,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `::`
    DoubleColon,
    /// `@`
    At,
    /// `@@`
    DoubleAt,
    /// `..`
    DotDot,
    /// `...`
    DotDotDot,
    /// The left half of an arrow: `-`, `=`, `~`, `<-`, `<=` or `<~`.
    ArrowLeft,
    /// The right half of an arrow: `-`, `=`, `~`, `->`, `=>` or `~>`.
    ArrowRight,
    /// A bare word: `name`, `a.b`, `x@y`, `to-do`.
    Symbol,
    /// `true` or `false` as a value.
    Boolean,
    /// `42`, `-1`
    Integer,
    /// `3.14`
    Decimal,
    /// `0xFF`
    Hexadecimal,
    /// `017`
    Octal,
    /// `12kg`
    Measurement,
    /// `'text'`
    SingleQuoted,
    /// `"text"`
    DoubleQuoted,
    /// A text in backticks: a name or a string, depending on its place.
    Backticked,
    /// A text between lines of three backticks, with or without a tag.
    Fenced,
    /// Invalid text; a tree with such a token has a diagnostic.
    Error,
}

impl TokenKind {
    /// Whether the grammar ignores the token: blanks and comments.
    #[must_use]
    pub const fn is_trivia(self) -> bool {
        matches!(self, Self::Whitespace | Self::Comment | Self::DocComment)
    }

    /// Whether the token can name something: a symbol, a backticked name or an integer.
    #[must_use]
    pub const fn is_identifier(self) -> bool {
        matches!(self, Self::Symbol | Self::Backticked | Self::Integer)
    }
}

/// A token of a [`SyntaxTree`](crate::SyntaxTree): its kind and where it starts. It ends where the
/// next one starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Offset of its first byte.
    pub start: u32,
    /// What it is.
    pub kind: TokenKind,
}
