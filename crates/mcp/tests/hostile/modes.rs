//! The modes of the server, grouped by attack.

macro_rules! modes {
    ($($attack:literal { $($mode:ident $name:literal $about:literal)+ })+) => {
        /// One kind of misbehaviour.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Mode { $($($mode),+),+ }

        /// Each mode with its attack, its name and its description.
        pub(crate) const ALL: &[(&str, Mode, &str, &str)] =
            &[$($(($attack, Mode::$mode, $name, $about)),+),+];
    };
}

modes! {
    "Nothing wrong" {
        Honest "honest" "read_note, add_note, delete_note, count_notes; every other mode has them too"
    }
    "Hidden text in definitions (A1)" {
        HiddenDescription "hidden-description" "an order in tag characters and zero-width spaces in a description"
        HiddenSchema "hidden-schema" "an order in an HTML comment, deep in the input schema"
        HiddenTitle "hidden-title" "a title that turns the direction of the text"
        HiddenEnum "hidden-enum" "a zero-width space in a choice of an enum"
        HiddenKey "hidden-key" "a zero-width space in the name of a parameter"
        HiddenAnnotations "hidden-annotations" "terminal codes in annotations.title"
        HiddenMeta "hidden-meta" "an order in tag characters in _meta"
        HiddenInstructions "hidden-instructions" "an order in tag characters in the server's instructions"
        PlainOrders "plain-orders" "visible orders in a description and in the instructions"
    }
    "Changed definitions: see --version, --turn, --silently, --ttl (A2)" {
        PullCharacter "pull-character" "version 2 differs by one character of a description"
        PullHint "pull-hint" "version 2 marks archive_notes as read-only"
        PullRename "pull-rename" "version 2 calls look_up look_it_up"
        PullOutputSchema "pull-output-schema" "version 2 has another outputSchema"
        PullMeta "pull-meta" "version 2 differs in _meta only"
        PullNew "pull-new" "version 2 has one more tool"
        PullGone "pull-gone" "version 2 has one tool less"
        PullHidden "pull-hidden" "version 2 hides an order"
    }
    "Changed behaviour (A3)" {
        Swap "swap" "the same definitions in both versions; in version 2 read_note sends the note away"
    }
    "Names (A4); --claims NAME sets the name of the server" {
        Mail "mail" "a tool send_email"
        MailLookAlike "mail-look-alike" "send_email with a Cyrillic letter in it"
        MailNear "mail-near" "send_emai1, one character off"
        MailShadow "mail-shadow" "a description that says how to use another server's send_email"
        BadNames "bad-names" "tools with an empty, an over-long, a spaced and no name, and two that differ by a dot only"
    }
    "Results (A5)" {
        ResultOrders "result-orders" "read_page says to call delete_all, which is there"
        ResultHidden "result-hidden" "read_page hides that in tag characters, and has bidi and zero-width ones"
        ResultAnsi "result-ansi" "terminal codes: read_page in a result, fail_page in a failure, break_page in an error"
        ResultLinks "result-links" "links to a local file, the metadata of a cloud and a script; an image; a resource"
        ResultEnvelope "result-envelope" "a text that looks like an envelope that requests authorization"
        ResultBreaksSchema "result-breaks-schema" "structured content that violates outputSchema"
        ResultNoStructure "result-no-structure" "an outputSchema, and no structured content"
        ResultHuge "result-huge" "a result of --megabytes (50)"
        ResultDeep "result-deep" "structured content that nests --count levels (10,000)"
        ErrorOrders "error-orders" "orders in errors of the protocol (refuse_page, break_page), and on standard error before it dies (die_page)"
        ProgressOrders "progress-orders" "orders and terminal codes in progress messages"
    }
    "Hints (A6)" {
        LyingHints "lying-hints" "tidy_up says it only reads, and deletes"
    }
    "Arguments (A8)" {
        TakesText "takes-text" "post_publicly cannot be undone and takes any text"
    }
    "Environment (A13)" {
        Environment "environment" "get_env returns all variables it was started with"
    }
    "Schemas (A16)" {
        SchemaRecursive "schema-recursive" "a $ref to itself with nothing in between, and two in a ring"
        SchemaTree "schema-tree" "a $ref to itself that ends with the data: an honest tree"
        SchemaAnyOf "schema-any-of" "an anyOf of --count (10,000)"
        SchemaDeep "schema-deep" "an input schema that nests --count levels (10,000)"
        SchemaDoubling "schema-doubling" "definitions that each use the one before twice, 40 times over"
        SchemaExternal "schema-external" "a $ref to an address, and one to a file"
        SchemaPattern "schema-pattern" "a pattern with exponential backtracking"
        SchemaNotObject "schema-not-object" "input schemas that are a text, a list, true, missing, and of type string"
    }
    "Too much (A17); --count says how many" {
        FloodProgress "flood-progress" "a call with 100,000 progress messages"
        FloodLog "flood-log" "a call with 100,000 log messages"
        FloodListChanged "flood-list-changed" "a call with 100,000 times list_changed"
        FloodRequests "flood-requests" "a call with 10,000 requests to the client: ping, roots, sampling, unknown"
        FloodQuestions "flood-questions" "a call that asks a question after every answer, without end"
        FloodErrors "flood-errors" "100,000 lines on standard error before it answers anything"
        FloodLine "flood-line" "an answer of --megabytes (256) on one line that never ends"
        EndlessCall "endless-call" "wait_silently, wait_with_progress, and wait_deaf, which does not heed a cancellation"
        EndlessList "endless-list" "tools/list always has a next page, with a new cursor"
        CircularList "circular-list" "tools/list always has a next page, with the same cursor"
        ManyTools "many-tools" "5,000 tools, 100 on a page"
    }
    "Elicitation during a call (A18), by the tool register" {
        AskName "ask-name" "a harmless one: a name and a colour"
        AskTwice "ask-twice" "two harmless ones in sequence"
        AskSecret "ask-secret" "asks for api_key"
        AskSecretDisguised "ask-secret-disguised" "asks for a password in a field called value"
        AskMany "ask-many" "--count harmless ones (1,000) at once (modern only)"
        AskSecretChoice "ask-secret-choice" "asks for a password in a field that pretends to be a choice"
        AskHidden "ask-hidden" "a question with terminal codes, bidi characters and orders"
        AskUrl "ask-url" "asks the user to open a URL"
        AskUrlScript "ask-url-script" "asks the user to open a javascript: URL"
        AskModel "ask-model" "sends a sampling request"
        AskUnasked "ask-unasked" "asks for a name while no call is running (not in the modern era)"
    }
    "Processes and lines (A19)" {
        Noise "noise" "--count lines (20) that are not messages before every answer"
        NoiseDictionary "noise-dictionary" "a Python dictionary and a log entry with an id before every answer"
        NoiseOnly "noise-only" "nothing but such lines, without end"
        Truncated "truncated" "a truncated message before the first --count (all) answers to calls"
        Confused "confused" "answers to unknown requests, and notifications about them, before every answer about tools"
        Stays "stays" "ignores the end of its input and SIGTERM, and has a grandchild that does too"
        Grandchild "grandchild" "ends with its input, and leaves a grandchild that holds its output open"
        GrandchildEscapes "grandchild-escapes" "the same, in a process group of its own"
        DiesAtStart "dies-at-start" "writes an error with terminal codes to standard error, and ends"
        DiesInCall "dies-in-call" "the tool crash has its effect, then the server ends without an answer"
        SlowStart "slow-start" "reads nothing for --delay milliseconds (3,000)"
    }
}

/// The mode with that name.
pub(crate) fn by_name(name: &str) -> Option<Mode> {
    ALL.iter()
        .find(|(_, _, known, _)| *known == name)
        .map(|(_, mode, _, _)| *mode)
}

impl Mode {
    /// Whether a definition has instructions for the model.
    pub(crate) fn poisons(self) -> bool {
        matches!(
            self,
            Self::HiddenDescription
                | Self::HiddenSchema
                | Self::HiddenTitle
                | Self::HiddenEnum
                | Self::HiddenKey
                | Self::HiddenAnnotations
                | Self::HiddenMeta
                | Self::PlainOrders
        )
    }

    /// Whether a definition changes after it was accepted.
    pub(crate) fn pulls(self) -> bool {
        matches!(
            self,
            Self::PullCharacter
                | Self::PullHint
                | Self::PullRename
                | Self::PullOutputSchema
                | Self::PullMeta
                | Self::PullNew
                | Self::PullHidden
        )
    }
}
