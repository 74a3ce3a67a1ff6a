//! English function words, request verbs, number words, negations, languages and colours.

/// Words between values, which are never a value by themselves.
#[rustfmt::skip] // A table, read across.
pub(crate) fn is_function_word(lower: &str) -> bool {
    is_determiner(lower)
        || is_preposition(lower)
        || is_pronoun(lower)
        || is_auxiliary(lower)
        || matches!(
        lower,
        "and" | "or" | "but" | "nor" | "so" | "yet" | "if" | "then" | "else" | "when" |
        "while" | "because" | "that" | "which" | "who" | "whom" | "whose" | "what" | "where"
        | "why" | "how" | "whether" | "not" | "no" | "too" | "also" | "very" | "just" |
        "only" | "please" | "there" | "here" | "now" | "than" | "as" | "s" | "t" | "ve" |
        "ll" | "re" | "d" | "m" | "yes" | "ok" | "okay" | "etc" | "currently" | "exactly" |
        "respectively" | "otherwise" | "thanks" | "thank" | "hi" | "hello" | "hey" | "dear"
        | "kindly" | "both" | "either" | "neither" | "once" | "again" | "already" | "still"
        | "ie" | "eg" | "given" | "such" | "terms" | "basis" | "based" | "considering" |
        "assuming" | "related" | "much" | "many" | "more" | "most" | "less" | "least" |
        "few" | "several"
    )
}

/// Articles and other determiners.
pub(crate) fn is_determiner(lower: &str) -> bool {
    matches!(
        lower,
        "a" | "an"
            | "the"
            | "this"
            | "that"
            | "these"
            | "those"
            | "my"
            | "your"
            | "his"
            | "her"
            | "its"
            | "our"
            | "their"
            | "some"
            | "any"
            | "all"
            | "each"
            | "every"
            | "another"
    )
}

/// Prepositions, and words that introduce a value like prepositions.
#[rustfmt::skip] // A table, read across.
pub(crate) fn is_preposition(lower: &str) -> bool {
    matches!(
        lower,
        "of" | "in" | "on" | "at" | "by" | "for" | "from" | "to" | "with" | "within" |
        "without" | "between" | "among" | "into" | "onto" | "over" | "under" | "above" |
        "below" | "about" | "around" | "near" | "nearby" | "across" | "after" | "before" |
        "during" | "since" | "until" | "till" | "through" | "throughout" | "via" | "per" |
        "against" | "towards" | "toward" | "using" | "regarding" | "concerning" |
        "including" | "excluding" | "except" | "like" | "up" | "down" | "out" | "off" |
        "along" | "upon" | "inside" | "outside" | "behind" | "beyond" | "versus" | "vs" |
        "as"
    )
}

/// Pronouns.
#[rustfmt::skip] // A table, read across.
pub(crate) fn is_pronoun(lower: &str) -> bool {
    matches!(
        lower,
        "i" | "me" | "you" | "he" | "him" | "she" | "it" | "we" | "us" | "they" | "them" |
        "myself" | "yourself" | "itself" | "themselves" | "someone" | "something" | "anyone"
        | "anything" | "everything" | "nothing" | "one's"
    )
}

/// Forms of be, have, do and the modals.
#[rustfmt::skip] // A table, read across.
pub(crate) fn is_auxiliary(lower: &str) -> bool {
    matches!(
        lower,
        "is" | "are" | "was" | "were" | "be" | "been" | "being" | "am" | "has" | "have" |
        "had" | "having" | "do" | "does" | "did" | "done" | "can" | "could" | "will" |
        "would" | "shall" | "should" | "may" | "might" | "must" | "let" | "lets" | "isn" |
        "don" | "doesn" | "didn" | "aren" | "wasn" | "won" | "wouldn" | "couldn" | "shouldn"
    )
}

/// Request verbs, which do not name the requested thing.
#[rustfmt::skip] // A table, read across.
pub(crate) fn is_request_verb(lower: &str) -> bool {
    matches!(
        lower,
        "find" | "get" | "give" | "show" | "tell" | "calculate" | "compute" | "determine" |
        "retrieve" | "fetch" | "search" | "look" | "lookup" | "check" | "list" | "provide" |
        "want" | "wants" | "need" | "needs" | "help" | "make" | "create" | "generate" |
        "set" | "update" | "change" | "convert" | "book" | "order" | "buy" | "play" | "send"
        | "add" | "remove" | "delete" | "run" | "perform" | "identify" | "analyze" |
        "analyse" | "predict" | "estimate" | "locate" | "compare" | "display" | "read" |
        "write" | "open" | "close" | "start" | "stop" | "turn" | "schedule" | "plan" |
        "suggest" | "recommend" | "explain" | "describe" | "know" | "see" | "like" | "wish"
        | "try" | "use" | "apply" | "translate" | "summarize" | "summarise" | "solve" |
        "evaluate" | "simplify" | "sort" | "filter" | "return" | "request" | "go" | "take" |
        "bring" | "put" | "keep" | "learn" | "figure" | "obtain" | "access" | "query" |
        "submit" | "verify" | "confirm" | "mix" | "draw" | "shuffle" | "compose" | "prepare"
        | "build" | "train" | "log" | "call" | "ask" | "answer" | "looking" | "interested" |
        "wondering" | "curious" | "am" | "pull" | "grab" | "happen" | "happening" |
        "happened" | "contain" | "contains" | "greet" | "say" | "reserve" | "rent" |
        "purchase" | "post" | "publish" | "report" | "examine" | "discover" | "explore" |
        "investigate" | "review" | "modify" | "edit" | "save"
    )
}

/// Generic words in the names and descriptions of parameters, which do not identify a value.
#[rustfmt::skip] // A table, read across.
pub(crate) fn is_generic_parameter_word(lower: &str) -> bool {
    matches!(
        lower,
        "the" | "name" | "names" | "value" | "values" | "type" | "types" | "number" |
        "numbers" | "num" | "list" | "array" | "string" | "integer" | "float" | "boolean" |
        "specific" | "specified" | "specify" | "specifies" | "particular" | "given" |
        "default" | "defaults" | "optional" | "required" | "requires" | "parameter" |
        "parameters" | "param" | "option" | "options" | "used" | "use" | "user" | "you" |
        "want" | "needed" | "need" | "interest" | "provided" | "desired" | "format" |
        "example" | "eg" | "e" | "g" | "set" | "get" | "return" | "returned" | "returns" |
        "result" | "results" | "true" | "false" | "whether" | "flag" | "if" | "include" |
        "included" | "will" | "should" | "be" | "retrieve" | "search" | "calculate" |
        "determine" | "total" | "amount" | "data" | "information" | "info" | "details" |
        "detail" | "id" | "code" | "text" | "input" | "output" | "object" | "item" | "items"
        | "one" | "possible" | "allowed" | "valid" | "supported" | "available" | "current" |
        "preferred" | "preference" | "certain" | "unique" | "identifier" | "any" | "all" |
        "form" | "such" | "etc" | "not" | "when" | "which" | "represented" | "typically" |
        "field" | "fields" | "main" | "filter" | "related" | "associated" | "based" |
        "first" | "second" | "third" | "new" | "only" | "either" | "may" | "must" | "can"
    )
}

/// The number that a word stands for: `two`, `twelve`, `ninety`, but no scales.
pub(crate) fn number_word(lower: &str) -> Option<f64> {
    Some(match lower {
        "zero" => 0.0,
        "one" => 1.0,
        "two" => 2.0,
        "three" => 3.0,
        "four" => 4.0,
        "five" => 5.0,
        "six" => 6.0,
        "seven" => 7.0,
        "eight" => 8.0,
        "nine" => 9.0,
        "ten" => 10.0,
        "eleven" => 11.0,
        "twelve" => 12.0,
        "thirteen" => 13.0,
        "fourteen" => 14.0,
        "fifteen" => 15.0,
        "sixteen" => 16.0,
        "seventeen" => 17.0,
        "eighteen" => 18.0,
        "nineteen" => 19.0,
        "twenty" => 20.0,
        "thirty" => 30.0,
        "forty" => 40.0,
        "fifty" => 50.0,
        "sixty" => 60.0,
        "seventy" => 70.0,
        "eighty" => 80.0,
        "ninety" => 90.0,
        _ => return None,
    })
}

/// The factor of a scale word: `hundred`, `million`, `k`.
pub(crate) fn scale_word(lower: &str) -> Option<f64> {
    Some(match lower {
        "hundred" | "hundreds" => 1e2,
        "thousand" | "thousands" => 1e3,
        "million" | "millions" | "mln" => 1e6,
        "billion" | "billions" | "bn" => 1e9,
        "trillion" | "trillions" => 1e12,
        "dozen" | "dozens" => 12.0,
        _ => return None,
    })
}

/// Negations.
#[rustfmt::skip] // A table, read across.
pub(crate) fn is_negation(lower: &str) -> bool {
    matches!(
        lower,
        "not" | "no" | "without" | "don" | "dont" | "doesn" | "never" | "exclude" |
        "excluding" | "except" | "disable" | "disabled" | "skip" | "omit" | "isn" | "aren" |
        "neither" | "avoid" | "avoiding" | "non" | "off" | "ignore" | "ignoring"
    )
}

/// Two-letter codes of common languages, by name.
pub(crate) const LANGUAGES: [(&str, &str); 40] = [
    ("english", "en"),
    ("french", "fr"),
    ("german", "de"),
    ("spanish", "es"),
    ("italian", "it"),
    ("portuguese", "pt"),
    ("dutch", "nl"),
    ("russian", "ru"),
    ("chinese", "zh"),
    ("mandarin", "zh"),
    ("japanese", "ja"),
    ("korean", "ko"),
    ("arabic", "ar"),
    ("hindi", "hi"),
    ("bengali", "bn"),
    ("turkish", "tr"),
    ("polish", "pl"),
    ("swedish", "sv"),
    ("norwegian", "no"),
    ("danish", "da"),
    ("finnish", "fi"),
    ("greek", "el"),
    ("hebrew", "he"),
    ("thai", "th"),
    ("vietnamese", "vi"),
    ("indonesian", "id"),
    ("malay", "ms"),
    ("czech", "cs"),
    ("slovak", "sk"),
    ("hungarian", "hu"),
    ("romanian", "ro"),
    ("bulgarian", "bg"),
    ("ukrainian", "uk"),
    ("persian", "fa"),
    ("farsi", "fa"),
    ("urdu", "ur"),
    ("tamil", "ta"),
    ("telugu", "te"),
    ("swahili", "sw"),
    ("latin", "la"),
];

/// Names of colours.
#[rustfmt::skip] // A table, read across.
pub(crate) fn is_colour(lower: &str) -> bool {
    matches!(
        lower,
        "red" | "green" | "blue" | "yellow" | "orange" | "purple" | "violet" | "pink" |
        "brown" | "black" | "white" | "grey" | "gray" | "cyan" | "magenta" | "teal" | "navy"
        | "maroon" | "beige" | "turquoise" | "indigo" | "gold" | "silver" | "crimson"
    )
}
