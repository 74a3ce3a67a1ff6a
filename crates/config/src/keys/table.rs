//! The table of all keys; those of categories and their tools are in `categories.rs` beside it, those of
//! servers in `servers.rs`, those of learning in `learning.rs`.

use super::categories::{CATEGORIES, RATE_LIMITS, TIMEOUT_RANGE};
use super::learning::LEARNING;
use super::servers::SERVERS;
use super::{Default, Key, Map, Range, Shape};
use crate::form::Form;

/// What the whole of a configuration looks like.
pub(crate) const ROOT: Shape = Shape::Table(KEYS);

const KEYS: &[Key] = &[
    Key {
        name: "environment",
        about: "Which of the environments this is.",
        shape: Shape::Text(Form::Environment),
        default: Default::Text("development"),
    },
    Key {
        name: "environments",
        about: "Environments that exist beside development, staging and production.",
        shape: Shape::Texts(Form::Environment),
        default: Default::Texts(&[]),
    },
    Key {
        name: "model",
        about: "The model that agents are given in place of the one they declare, such as `reflex` or `Ollama/llama3`.",
        shape: Shape::Text(Form::Text),
        default: Default::Nothing,
    },
    Key {
        name: "base_url",
        about: "Where the model is asked, if not where its provider usually is.",
        shape: Shape::Text(Form::Url),
        default: Default::Nothing,
    },
    Key {
        name: "libraries",
        about: "Where the tools come from: `builtin` for those that come with the program, or paths of library files from the directory of this file.",
        shape: Shape::Texts(Form::Path),
        default: Default::Texts(&["builtin"]),
    },
    Key {
        name: "policies",
        about: "The file with the policies, from the directory of this file; without it the built-in ones hold.",
        shape: Shape::Text(Form::Path),
        default: Default::Nothing,
    },
    Key {
        name: "data_directory",
        about: "Where runs are kept, from the directory of this file.",
        shape: Shape::Text(Form::Path),
        default: Default::Nothing,
    },
    Key {
        name: "permissions",
        about: "Permissions that exist beside the built-in ones and Slack's scopes, such as `crm:read`.",
        shape: Shape::Texts(Form::Permission),
        default: Default::Texts(&[]),
    },
    Key {
        name: "gate",
        about: "What every call passes before it runs.",
        shape: Shape::Table(GATE),
        default: Default::Nothing,
    },
    Key {
        name: "risk",
        about: "How reversible tools are, whatever else speaks about it.",
        shape: Shape::Map(&RISK),
        default: Default::Nothing,
    },
    Key {
        name: "principals",
        about: "What is granted to those whom agents act for; `*` is everybody. Nobody holds a permission that is not granted here.",
        shape: Shape::Map(&PRINCIPALS),
        default: Default::Nothing,
    },
    Key {
        name: "agents",
        about: "What holds for single agents, whomever they act for.",
        shape: Shape::Map(&AGENTS),
        default: Default::Nothing,
    },
    Key {
        name: "categories",
        about: "Tools that belong together: what they demand and what is set for them.",
        shape: Shape::Map(&CATEGORIES),
        default: Default::Nothing,
    },
    Key {
        name: "servers",
        about: "MCP servers whose tools can be used, each by a name that its tools' names begin with.",
        shape: Shape::Map(&SERVERS),
        default: Default::Nothing,
    },
    Key {
        name: "ceilings",
        about: "Limits that nothing else in the configuration exceeds. The lowest of all layers holds.",
        shape: Shape::Table(CEILINGS),
        default: Default::Nothing,
    },
    Key {
        name: "breaker",
        about: "When a tool that keeps failing is left alone for a while.",
        shape: Shape::Table(BREAKER),
        default: Default::Nothing,
    },
    Key {
        name: "selection",
        about: "Which tools a model is shown when there are many.",
        shape: Shape::Table(SELECTION),
        default: Default::Nothing,
    },
    Key {
        name: "intents",
        about: "What people want, by examples of how they say it.",
        shape: Shape::Map(&INTENTS),
        default: Default::Nothing,
    },
    Key {
        name: "gaps",
        about: "What is found out about tools that a task lacks.",
        shape: Shape::Table(GAPS),
        default: Default::Nothing,
    },
    Key {
        name: "learning",
        about: "What runs teach: strategies in a playbook, recalled for tasks like theirs.",
        shape: Shape::Table(LEARNING),
        default: Default::Nothing,
    },
    Key {
        name: "files",
        about: "What the built-in file tools may do.",
        shape: Shape::Table(FILES),
        default: Default::Nothing,
    },
    Key {
        name: "http",
        about: "What the built-in web tools may do.",
        shape: Shape::Table(HTTP),
        default: Default::Nothing,
    },
    Key {
        name: "search",
        about: "Where the built-in web search asks.",
        shape: Shape::Table(SEARCH),
        default: Default::Nothing,
    },
    Key {
        name: "automation",
        about: "What drives a browser for the built-in web automation.",
        shape: Shape::Table(AUTOMATION),
        default: Default::Nothing,
    },
];

const GATE: &[Key] = &[
    Key {
        name: "undo_window_seconds",
        about: "How long a call can be undone before it takes effect, if its specification does not say.",
        shape: Shape::Integer(Range {
            min: 0,
            max: 86_400,
            unit: "seconds",
        }),
        default: Default::Integer(10),
    },
    Key {
        name: "confidence_threshold",
        about: "A stated confidence below this needs a person, where a call can be undone only for a while.",
        shape: Shape::Fraction,
        default: Default::Number(0.8),
    },
    Key {
        name: "without_confidence",
        about: "What happens to such a call when no confidence is stated: it is held for the undo window, or a person is asked.",
        shape: Shape::Words(&["hold", "ask"]),
        default: Default::Text("hold"),
    },
];

const RISK: Map = Map {
    names: Form::Tool,
    placeholder: "TOOL",
    each: Shape::Words(&["reversible", "reversible_with_delay", "irreversible"]),
    fixed: &[],
};

const PRINCIPALS: Map = Map {
    names: Form::Principal,
    placeholder: "PRINCIPAL",
    each: Shape::Table(&[
        Key {
            name: "permissions",
            about: "The permissions it holds.",
            shape: Shape::Texts(Form::Permission),
            default: Default::Nothing,
        },
        RATE_LIMITS_OF_A_PRINCIPAL,
    ]),
    fixed: &[],
};

const RATE_LIMITS_OF_A_PRINCIPAL: Key = Key {
    name: "rate_limits",
    about: "How many calls may be made for it.",
    shape: Shape::Table(RATE_LIMITS),
    default: Default::Nothing,
};

const AGENTS: Map = Map {
    names: Form::Agent,
    placeholder: "AGENT",
    each: Shape::Table(&[
        Key {
            name: "permissions",
            about: "The only permissions that count when it calls a tool; all that its principal holds if this is left out.",
            shape: Shape::Texts(Form::Permission),
            default: Default::Nothing,
        },
        Key {
            name: "servers",
            about: "Servers whose usable tools it is all given, beside those that it declares.",
            shape: Shape::Texts(Form::Server),
            default: Default::Nothing,
        },
    ]),
    fixed: &[],
};

const CEILINGS: &[Key] = &[
    Key {
        name: "rate_limits",
        about: "The most calls that any tool, category or principal may be allowed.",
        shape: Shape::Table(RATE_LIMITS),
        default: Default::Nothing,
    },
    Key {
        name: "timeout_seconds",
        about: "The longest that a call to any tool may take.",
        shape: Shape::Integer(TIMEOUT_RANGE),
        default: Default::Nothing,
    },
];

const BREAKER: &[Key] = &[
    Key {
        name: "failures",
        about: "After how many failures in a row a tool is left alone.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 1_000,
            unit: "failures",
        }),
        default: Default::Integer(5),
    },
    Key {
        name: "cooldown_seconds",
        about: "How long it is left alone before one call may try again.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 86_400,
            unit: "seconds",
        }),
        default: Default::Integer(30),
    },
];

const SELECTION: &[Key] = &[
    Key {
        name: "token_budget",
        about: "How many tokens the tools shown to a model may take; the best fitting ones are shown.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 10_000_000,
            unit: "tokens",
        }),
        default: Default::Integer(4_000),
    },
    Key {
        name: "always",
        about: "Tools that are always shown.",
        shape: Shape::Texts(Form::Tool),
        default: Default::Texts(&[]),
    },
];

const INTENTS: Map = Map {
    names: Form::Intent,
    placeholder: "INTENT",
    each: Shape::Table(&[
        Key {
            name: "examples",
            about: "How people say it.",
            shape: Shape::Texts(Form::Text),
            default: Default::Nothing,
        },
        Key {
            name: "tools",
            about: "Tools that can do it.",
            shape: Shape::Texts(Form::Tool),
            default: Default::Nothing,
        },
        Key {
            name: "context",
            about: "What must be known to do it.",
            shape: Shape::Texts(Form::Text),
            default: Default::Nothing,
        },
        Key {
            name: "fallbacks",
            about: "What else can be done if its tools fail.",
            shape: Shape::Texts(Form::Text),
            default: Default::Nothing,
        },
    ]),
    fixed: &[Key {
        name: "threshold",
        about: "An intent that is less sure than this is none.",
        shape: Shape::Fraction,
        default: Default::Number(0.5),
    }],
};

const GAPS: &[Key] = &[
    Key {
        name: "check",
        about: "Whether it is found out before a run if any tool does what the task asks.",
        shape: Shape::Boolean,
        default: Default::Boolean(true),
    },
    Key {
        name: "threshold",
        about: "What is less likely missing than this is not told before a run.",
        shape: Shape::Fraction,
        default: Default::Number(0.9),
    },
    Key {
        name: "ask_model",
        about: "Whether the model is asked which capabilities a task needs; its word is held against the tools.",
        shape: Shape::Boolean,
        default: Default::Boolean(false),
    },
];

const FILES: &[Key] = &[
    Key {
        name: "roots",
        about: "The directories that file tools may work in, from the directory of this file; without any they work nowhere.",
        shape: Shape::Texts(Form::Path),
        default: Default::Texts(&[]),
    },
    Key {
        name: "max_bytes",
        about: "The largest file that is read or written.",
        shape: Shape::Integer(BYTES),
        default: Default::Integer(1_048_576),
    },
];

const HTTP: &[Key] = &[
    Key {
        name: "hosts",
        about: "The hosts that web tools may ask: `example.org`, `*.example.org` for all below it, or `*` for all public ones; a port may follow, as in `example.org:8443`.",
        shape: Shape::Texts(Form::Host),
        default: Default::Texts(&[]),
    },
    Key {
        name: "max_bytes",
        about: "The largest answer that is taken.",
        shape: Shape::Integer(BYTES),
        default: Default::Integer(2_097_152),
    },
    Key {
        name: "timeout_seconds",
        about: "How long a single request may take, redirects included.",
        shape: Shape::Integer(TIMEOUT_RANGE),
        default: Default::Integer(20),
    },
    Key {
        name: "allow_private",
        about: "Whether hosts that are listed by a private or local address may be asked.",
        shape: Shape::Boolean,
        default: Default::Boolean(false),
    },
];

const BYTES: Range = Range {
    min: 1,
    max: 8_388_608,
    unit: "bytes",
};

const SEARCH: &[Key] = &[
    Key {
        name: "endpoint",
        about: "The address of a SearxNG server.",
        shape: Shape::Text(Form::Url),
        default: Default::Nothing,
    },
    Key {
        name: "max_results",
        about: "The most results that a search gives.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 50,
            unit: "results",
        }),
        default: Default::Integer(10),
    },
];

const AUTOMATION: &[Key] = &[Key {
    name: "endpoint",
    about: "The address of a service that drives a browser.",
    shape: Shape::Text(Form::Url),
    default: Default::Nothing,
}];
