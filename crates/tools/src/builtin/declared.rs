//! The declarations of the built-in tools: name, description, signature and attributes.
//! Both the tools and their specifications are made from this table, so that they never differ.

use windlass_spec::{
    NonEmptyText, RiskLevel, Signature, TimeoutSeconds, ToolAttributes, ToolName, ToolSpecification,
};

use crate::builder::ToolBuilder;
use crate::tool::Tool;

/// A setting that a tool requires.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequiredSetting {
    /// The key of the configuration.
    pub(super) key: &'static str,
    /// What to write there.
    pub(super) help: &'static str,
}

/// One built-in tool. None returns untrusted content as a bare text or a bare object: such a result
/// could be read as an envelope, and untrusted content must not be able to request an approval.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeclaredTool {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) signature: &'static str,
    pub(super) category: &'static str,
    pub(super) risk: RiskLevel,
    pub(super) idempotent: bool,
    pub(super) open_world: bool,
    pub(super) sensitive: bool,
    pub(super) timeout_seconds: i64,
    pub(super) needs: Option<RequiredSetting>,
}

const FILES: &str = "file_tools";
const WEB: &str = "web_tools";
const SYSTEM: &str = "system_tools";

const ROOTS: Option<RequiredSetting> = Some(RequiredSetting {
    key: "[files] roots",
    help: "list the directories it may use, such as `roots = [\"notes\"]`",
});
const HOSTS: Option<RequiredSetting> = Some(RequiredSetting {
    key: "[http] hosts",
    help: "list the hosts it may call, such as `hosts = [\"*.example.org\"]`, or `\"*\"` for all public ones",
});
const SEARCH: Option<RequiredSetting> = Some(RequiredSetting {
    key: "[search] endpoint",
    help: "give the address of a SearxNG server that answers in JSON, such as `endpoint = \"http://localhost:8080/search\"`",
});
const AUTOMATION: Option<RequiredSetting> = Some(RequiredSetting {
    key: "[automation] endpoint",
    help: "give the address of a service that drives a browser, or bind an MCP tool of this name",
});

/// The base of most declarations: a tool that only reads.
const READS: DeclaredTool = DeclaredTool {
    name: "",
    description: "",
    signature: "",
    category: SYSTEM,
    risk: RiskLevel::Reversible,
    idempotent: true,
    open_world: false,
    sensitive: false,
    timeout_seconds: 10,
    needs: None,
};

pub(super) const GET_CURRENT_TIME: DeclaredTool = DeclaredTool {
    name: "get_current_time",
    description: "Tells the current date and time of day in a time zone",
    signature: "(timezone: Text = \"UTC\" \"An IANA time zone such as Europe/Berlin, or its city\") \
                --> IO {time: Text, timezone: Text, weekday: Text}",
    ..READS
};

pub(super) const READ_FILE: DeclaredTool = DeclaredTool {
    name: "read_file",
    description: "Reads a text file and returns its content",
    signature: "(path: Text \"The path of the file, for example notes/plan.txt\") \
                --> IO {path: Text, text: Text}",
    category: FILES,
    sensitive: true,
    timeout_seconds: 30,
    needs: ROOTS,
    ..READS
};

pub(super) const WRITE_FILE: DeclaredTool = DeclaredTool {
    name: "write_file",
    description: "Writes text into a file, whole or not at all; a file that exists is only replaced in mode overwrite",
    signature: "(path: Text \"The path of the file, for example notes/plan.txt\", \
                content: Text \"The whole new content of the file\", \
                mode: \"create\" | \"overwrite\" = \"create\" \"Whether a file that exists may be replaced\") \
                --> IO {path: Text, bytes: Int, replaced: Bool}",
    category: FILES,
    risk: RiskLevel::ReversibleWithDelay,
    timeout_seconds: 30,
    needs: ROOTS,
    ..READS
};

pub(super) const LIST_DIRECTORY: DeclaredTool = DeclaredTool {
    name: "list_directory",
    description: "Lists the files and folders in a directory",
    signature: "(path: Text = \".\" \"The path of the directory, for example notes\") \
                --> IO [{name: Text, kind: \"file\" | \"directory\" | \"link\" | \"other\", bytes: Maybe Int}]",
    category: FILES,
    timeout_seconds: 30,
    needs: ROOTS,
    ..READS
};

pub(super) const DELETE_FILE: DeclaredTool = DeclaredTool {
    name: "delete_file",
    description: "Deletes a file for good; it cannot be brought back",
    signature: "(path: Text \"The path of the file, for example notes/plan.txt\") \
                --> IO {path: Text, bytes: Int}",
    category: FILES,
    risk: RiskLevel::Irreversible,
    idempotent: false,
    timeout_seconds: 30,
    needs: ROOTS,
    ..READS
};

pub(super) const HTTP_GET: DeclaredTool = DeclaredTool {
    name: "http_get",
    description: "Makes an HTTP GET request to a URL and returns the text that the server sends, as it is",
    signature: "(url: Text \"The URL, beginning with https:// or http://\") \
                --> IO {url: Text, content_type: Text, text: Text}",
    category: WEB,
    open_world: true,
    timeout_seconds: 60,
    needs: HOSTS,
    ..READS
};

pub(super) const WEB_SEARCH: DeclaredTool = DeclaredTool {
    name: "web_search",
    description: "Searches the web for information about the world: who, what, when, where. Returns titles, addresses and snippets",
    signature: "(query: Text \"The question or what to search for\", max_results: Int = 5 \"How many results at most\") \
                --> IO [{title: Text, url: Text, snippet: Text}]",
    category: WEB,
    open_world: true,
    timeout_seconds: 30,
    needs: SEARCH,
    ..READS
};

pub(super) const WEB_CRAWL: DeclaredTool = DeclaredTool {
    name: "web_crawl",
    description: "Reads a web page as plain text and, if asked to, the pages of the same site that it links to",
    signature: "(url: Text \"The URL of the page, beginning with https:// or http://\", \
                max_pages: Int = 1 \"How many pages to read at most, 1 to 20\", \
                depth: Int = 1 \"How many links away from the first page, 0 to 3\") \
                --> IO {pages: [{url: Text, title: Text, text: Text}], \
                skipped: [{url: Text, reason: Text}]}",
    category: WEB,
    open_world: true,
    timeout_seconds: 120,
    needs: HOSTS,
    ..READS
};

pub(super) const WEB_AUTOMATION: DeclaredTool = DeclaredTool {
    name: "web_automation",
    description: "Operates a web site in a browser: fills in forms, clicks buttons, signs in",
    signature: "(url: Text \"The URL of the page to begin at\", \
                task: Text \"What to do there, in plain words\") --> IO Object",
    category: WEB,
    risk: RiskLevel::Irreversible,
    idempotent: false,
    open_world: true,
    timeout_seconds: 300,
    needs: AUTOMATION,
    ..READS
};

pub(super) const CHECK_SECURITY_STATUS: DeclaredTool = DeclaredTool {
    name: "check_security_status",
    description: "Reports the security status: environment, configured tools and their risk, allowed folders, hosts and limits",
    signature: "() --> IO Object",
    ..READS
};

pub(super) const FORMAT_RESPONSE: DeclaredTool = DeclaredTool {
    name: "format_response",
    description: "Formats structured data for people, as plain text, as Markdown with tables, or as indented JSON",
    signature: "(data: Object \"The data; a list of records becomes a table\", \
                format: \"text\" | \"markdown\" | \"json\" = \"markdown\" \"How to write it\", \
                title: Maybe Text \"A heading above it\") --> IO {result: Text}",
    ..READS
};

/// The signature of a memory search, with these parameters.
macro_rules! found {
    ($takes:literal) => {
        concat!(
            $takes,
            " --> IO [{id: Text, text: Text, title: Maybe Text, source: Maybe Text, score: Double, why: Text, \
             stored_at: Text, untrusted: Bool}]"
        )
    };
}

pub(super) const REMEMBER: DeclaredTool = DeclaredTool {
    name: "remember",
    description: "Remembers something for later: a fact, a preference, a decision. What is known already is not stored twice",
    signature: "(content: Text \"What to remember, in full sentences\", \
                title: Maybe Text \"What it is called\", \
                scope: \"agent\" | \"principal\" | \"run\" = \"agent\" \"Who remembers it: this agent, all agents of the user, or this run alone\") \
                --> IO {id: Text, known: Bool}",
    timeout_seconds: 60,
    ..READS
};

pub(super) const RECALL: DeclaredTool = DeclaredTool {
    name: "recall",
    description: "Recalls what was remembered about something, by meaning and words, best first",
    signature: found!(
        "(query: Text \"What to recall, in a few words\", max_results: Int = 5 \"How many results at most, 1 to 50\")"
    ),
    sensitive: true,
    timeout_seconds: 30,
    ..READS
};

pub(super) const FORGET: DeclaredTool = DeclaredTool {
    name: "forget",
    description: "Forgets something that was remembered, for good; it cannot be brought back",
    signature: "(id: Text \"The id of what to forget, as recall tells it\") \
                --> IO {id: Text, forgotten: Bool}",
    risk: RiskLevel::Irreversible,
    idempotent: false,
    timeout_seconds: 60,
    ..READS
};

pub(super) const SEARCH_MEMORIES: DeclaredTool = DeclaredTool {
    name: "search_memories",
    description: "Searches the memories of this agent, its user and this run, by meaning and words, best first",
    signature: found!(
        "(query: Text \"What to look for, in a few words\", \
         scope: \"all\" | \"agent\" | \"principal\" | \"run\" = \"all\" \"Whose memories\", \
         max_results: Int = 5 \"How many results at most, 1 to 50\")"
    ),
    sensitive: true,
    timeout_seconds: 30,
    ..READS
};

/// An alias of `search_memories`.
pub(super) const MEMORY_SEARCH: DeclaredTool = DeclaredTool {
    name: "memory_search",
    ..SEARCH_MEMORIES
};

pub(super) const STORE_DOCUMENT: DeclaredTool = DeclaredTool {
    name: "store_document",
    description: "Stores a document so that its parts can be found by semantic_search; gives its id",
    signature: "(content: Text \"The whole text of the document\", \
                title: Maybe Text \"What it is called\", \
                source: Maybe Text \"Where it came from\", \
                scope: \"agent\" | \"principal\" | \"run\" = \"agent\" \"Who keeps it: this agent, all agents of the user, or this run alone\") \
                --> IO {document_id: Text, chunks: Int, known: Bool}",
    timeout_seconds: 120,
    ..READS
};

pub(super) const SEMANTIC_SEARCH: DeclaredTool = DeclaredTool {
    name: "semantic_search",
    description: "Searches the documents that were stored for passages that mean what is looked for, best first",
    signature: found!(
        "(query: Text \"What to look for, as a question or in a few words\", \
         scope: \"all\" | \"agent\" | \"principal\" | \"run\" = \"all\" \"Whose documents\", \
         max_results: Int = 5 \"How many results at most, 1 to 50\")"
    ),
    sensitive: true,
    timeout_seconds: 30,
    ..READS
};

/// All built-in tools, in the order of the library.
pub(super) const ALL: [DeclaredTool; 18] = [
    GET_CURRENT_TIME,
    READ_FILE,
    WRITE_FILE,
    LIST_DIRECTORY,
    DELETE_FILE,
    HTTP_GET,
    WEB_SEARCH,
    WEB_CRAWL,
    WEB_AUTOMATION,
    CHECK_SECURITY_STATUS,
    FORMAT_RESPONSE,
    REMEMBER,
    RECALL,
    FORGET,
    SEARCH_MEMORIES,
    MEMORY_SEARCH,
    STORE_DOCUMENT,
    SEMANTIC_SEARCH,
];

impl DeclaredTool {
    /// A builder for the tool, without its implementation.
    pub(super) fn builder(&self) -> ToolBuilder {
        Tool::builder(self.name)
            .description(self.description)
            .signature(self.signature)
            .attributes(self.attributes())
    }

    fn attributes(&self) -> ToolAttributes {
        ToolAttributes {
            risk: Some(self.risk),
            category: NonEmptyText::new(self.category).ok(),
            timeout_seconds: TimeoutSeconds::try_from(self.timeout_seconds).ok(),
            idempotent: Some(self.idempotent),
            open_world: Some(self.open_world),
            sensitive: Some(self.sensitive),
            ..ToolAttributes::default()
        }
    }

    /// The specification. The tests check that all of them are valid.
    pub(super) fn specification(&self) -> Option<ToolSpecification> {
        let specification = ToolSpecification::new(
            ToolName::new(self.name).ok()?,
            NonEmptyText::new(self.description).ok()?,
            Signature::parse(self.signature).ok()?,
        );
        specification.with_attributes(self.attributes()).ok()
    }
}
