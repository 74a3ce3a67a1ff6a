//! The table of all keys. The keys of categories and their tools are in `categories.rs`, those of servers in
//! `servers.rs`, those of webhooks in `webhooks.rs`, those of learning in `learning.rs`, and those of budgets, prices and
//! retention in `money.rs`.

use windlass_spec::Confidence;

use super::categories::{CATEGORIES, RATE_LIMITS, TIMEOUT_RANGE};
use super::learning::LEARNING;
use super::money::{
    BUDGETS_OF_A_PRINCIPAL, BUDGETS_OF_ALL, BUDGETS_OF_AN_AGENT, PRICES, RETENTION,
};
use super::oidc::OIDC;
use super::servers::SERVERS;
use super::webhooks::WEBHOOKS;
use super::{DefaultValue, Key, Map, Range, Shape};
use crate::effect::{KeyEffect, KeyPower, Stricter, Unset};
use crate::form::Form;

/// The shape of a whole configuration.
pub(crate) const ROOT: Shape = Shape::Table(KEYS);

const KEYS: &[Key] = &[
    Key {
        name: "environment",
        about: "The current environment.",
        shape: Shape::Text(Form::Environment),
        default: DefaultValue::Text("development"),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
    },
    Key {
        name: "environments",
        about: "Environments in addition to development, staging and production.",
        shape: Shape::Texts(Form::Environment),
        default: DefaultValue::Texts(&[]),
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "model",
        about: "The model that agents use instead of the one they declare, such as `reflex` or `Ollama/llama3`.",
        shape: Shape::Text(Form::Text),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Only("reflex")),
    },
    Key {
        name: "base_url",
        about: "The base URL of the model, if it is not its provider's usual one.",
        shape: Shape::Text(Form::Url),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
    },
    Key {
        name: "libraries",
        about: "The sources of tools: `builtin` for the tools of the program, or paths of library files, relative to the directory of this file.",
        shape: Shape::Texts(Form::Path),
        default: DefaultValue::Texts(&["builtin"]),
        effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::Only("builtin")),
    },
    Key {
        name: "policies",
        about: "The file with the policies, relative to the directory of this file. Without it, the built-in policies apply.",
        shape: Shape::Text(Form::Path),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Stacks,
    },
    Key {
        name: "data_directory",
        about: "The directory where runs are stored, relative to the directory of this file.",
        shape: Shape::Text(Form::Path),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Never),
    },
    Key {
        name: "isolation",
        about: "How programs of tools, MCP servers and the checker are isolated: `declared` refuses one that declares `files` or `offline` if the system cannot enforce it, `best_effort` starts it anyway, `strict` also refuses all if keys and data cannot be covered, and `off` isolates none.",
        shape: Shape::Words(&["off", "best_effort", "declared", "strict"]),
        default: DefaultValue::Text("declared"),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::LaterWord),
    },
    Key {
        name: "permissions",
        about: "Permissions in addition to the built-in ones and Slack's scopes, such as `crm:read`.",
        shape: Shape::Texts(Form::Permission),
        default: DefaultValue::Texts(&[]),
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "binding",
        about: "How tools are bound to their implementations.",
        shape: Shape::Table(BINDING),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "gate",
        about: "The gate that every call passes before it runs.",
        shape: Shape::Table(GATE),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "approvals",
        about: "Questions to people.",
        shape: Shape::Table(APPROVALS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "risk",
        about: "How reversible tools are. Takes precedence over every other source.",
        shape: Shape::Map(&RISK),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::LaterWord),
    },
    Key {
        name: "principals",
        about: "The permissions and rate limits of principals. `*` stands for every principal. A permission that is not granted here is denied.",
        shape: Shape::Map(&PRINCIPALS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "approvers",
        about: "The groups of approvers that policies can name, such as `@approvers(\"finance\", 2)`.",
        shape: Shape::Map(&APPROVERS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "agents",
        about: "Settings of single agents, for any principal.",
        shape: Shape::Map(&AGENTS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "categories",
        about: "Categories of tools with their required permissions and settings.",
        shape: Shape::Map(&CATEGORIES),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "servers",
        about: "MCP servers by name. The names of their tools start with the name of the server.",
        shape: Shape::Map(&SERVERS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::NewEntry(KeyPower::RunsPrograms),
    },
    Key {
        name: "webhooks",
        about: "Who is notified of approvals, ends of runs and gaps: URLs and commands, by name.",
        shape: Shape::Map(&WEBHOOKS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::NewEntry(KeyPower::RunsPrograms),
    },
    Key {
        name: "ceilings",
        about: "Limits that no other value of the configuration can exceed. The lowest value of all layers applies.",
        shape: Shape::Table(CEILINGS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    BUDGETS_OF_ALL,
    Key {
        name: "prices",
        about: "What models cost, by names such as `OpenAI/gpt-4.1`. An entry replaces that of the list that ships.",
        shape: Shape::Map(&PRICES),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "retention",
        about: "How long what is stored about ended runs is kept. A worker removes what is older.",
        shape: Shape::Table(RETENTION),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "breaker",
        about: "The circuit breaker for tools that keep failing.",
        shape: Shape::Table(BREAKER),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "selection",
        about: "Which tools a model is shown when there are many.",
        shape: Shape::Table(SELECTION),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "intents",
        about: "The intents of user requests, defined by examples.",
        shape: Shape::Map(&INTENTS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "gaps",
        about: "The detection of missing tools.",
        shape: Shape::Table(GAPS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "learning",
        about: "Learning from runs: strategies in a playbook that are recalled for similar tasks.",
        shape: Shape::Table(LEARNING),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "files",
        about: "What the built-in file tools may do.",
        shape: Shape::Table(FILES),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "http",
        about: "What the built-in web tools may do.",
        shape: Shape::Table(HTTP),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "search",
        about: "The built-in web search.",
        shape: Shape::Table(SEARCH),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "automation",
        about: "The service for the built-in web automation.",
        shape: Shape::Table(AUTOMATION),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "oidc",
        about: "The OpenID Connect issuer whose tokens the server accepts.",
        shape: Shape::Table(OIDC),
        default: DefaultValue::Nothing,
        // As a whole: another claim or role would give other people the rights of this issuer's users.
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
    },
    Key {
        name: "trust",
        about: "The projects that are trusted without a question.",
        shape: Shape::Table(TRUST),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
];

const TRUST: &[Key] = &[Key {
    name: "directories",
    about: "Directories whose projects are trusted, with all projects below them. Only the files of the user and the administrator may set it.",
    shape: Shape::Texts(Form::Path),
    default: DefaultValue::Nothing,
    effect: KeyEffect::OwnerOnly,
}];

const BINDING: &[Key] = &[Key {
    name: "mode",
    about: "How closely an implementation must match its specification: it accepts everything that the specification allows, or their schemas are equal.",
    shape: Shape::Words(&["compatible", "exact"]),
    default: DefaultValue::Text("exact"),
    effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::LaterWord),
}];

const GATE: &[Key] = &[
    Key {
        name: "undo_window_seconds",
        about: "How long a call can be undone before it takes effect, if its specification does not set it.",
        shape: Shape::Integer(Range {
            min: 0,
            max: 86_400,
            unit: "seconds",
        }),
        default: DefaultValue::Integer(10),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Higher),
    },
    Key {
        name: "confidence_threshold",
        about: "A call with an undo window and a stated confidence below this needs approval.",
        shape: Shape::Fraction,
        default: DefaultValue::Number(Confidence::DEFAULT_THRESHOLD.get()),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Higher),
    },
    Key {
        name: "without_confidence",
        about: "What happens to such a call without a stated confidence: it is held for the undo window, or it needs approval.",
        shape: Shape::Words(&["hold", "ask"]),
        default: DefaultValue::Text("hold"),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::LaterWord),
    },
];

const APPROVALS: &[Key] = &[Key {
    name: "expiry_seconds",
    about: "How long an approver has to decide. A tool that asks may set an earlier time, not a later one.",
    shape: Shape::Integer(Range {
        min: 1,
        max: 2_592_000,
        unit: "seconds",
    }),
    default: DefaultValue::Integer(86_400),
    effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
}];

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
            about: "The permissions that are granted to it.",
            shape: Shape::Texts(Form::Permission),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(
                KeyPower::LoosensRules,
                Stricter::Fewer {
                    unset: Unset::Nothing,
                },
            ),
        },
        RATE_LIMITS_OF_A_PRINCIPAL,
        BUDGETS_OF_A_PRINCIPAL,
    ]),
    fixed: &[],
};

const RATE_LIMITS_OF_A_PRINCIPAL: Key = Key {
    name: "rate_limits",
    about: "The rate limits of calls that are made for it.",
    shape: Shape::Table(RATE_LIMITS),
    default: DefaultValue::Nothing,
    effect: KeyEffect::ByKey,
};

const APPROVERS: Map = Map {
    names: Form::Group,
    placeholder: "GROUP",
    each: Shape::Table(&[Key {
        name: "members",
        about: "The approvers of the group, by the names that `windlass approvers list` prints.",
        shape: Shape::Texts(Form::Approver),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(
            KeyPower::LoosensRules,
            Stricter::Fewer {
                unset: Unset::Nothing,
            },
        ),
    }]),
    fixed: &[],
};

const AGENTS: Map = Map {
    names: Form::Agent,
    placeholder: "AGENT",
    each: Shape::Table(&[
        Key {
            name: "permissions",
            about: "The permissions that it may use. Defaults to all permissions of its principal.",
            shape: Shape::Texts(Form::Permission),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(
                KeyPower::LoosensRules,
                Stricter::Fewer {
                    unset: Unset::Everything,
                },
            ),
        },
        Key {
            name: "servers",
            about: "Servers of which it gets all usable tools, in addition to the tools that it declares.",
            shape: Shape::Texts(Form::Server),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(
                KeyPower::LoosensRules,
                Stricter::Fewer {
                    unset: Unset::Nothing,
                },
            ),
        },
        BUDGETS_OF_AN_AGENT,
    ]),
    fixed: &[],
};

const CEILINGS: &[Key] = &[
    Key {
        name: "rate_limits",
        about: "The highest rate limits that any tool, category or principal may have.",
        shape: Shape::Table(RATE_LIMITS),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "timeout_seconds",
        about: "The longest timeout that any tool may have.",
        shape: Shape::Integer(TIMEOUT_RANGE),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Harmless,
    },
];

const BREAKER: &[Key] = &[
    Key {
        name: "failures",
        about: "The number of consecutive failures after which a tool is blocked.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 1_000,
            unit: "failures",
        }),
        default: DefaultValue::Integer(5),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
    Key {
        name: "cooldown_seconds",
        about: "How long the tool stays blocked before one call may try again.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 86_400,
            unit: "seconds",
        }),
        default: DefaultValue::Integer(30),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Higher),
    },
];

const SELECTION: &[Key] = &[
    Key {
        name: "token_budget",
        about: "The most tokens that the tools shown to a model may take. The best matching tools are shown.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 10_000_000,
            unit: "tokens",
        }),
        default: DefaultValue::Integer(4_000),
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "always",
        about: "Tools that are always shown.",
        shape: Shape::Texts(Form::Tool),
        default: DefaultValue::Texts(&[]),
        effect: KeyEffect::Harmless,
    },
];

const INTENTS: Map = Map {
    names: Form::Intent,
    placeholder: "INTENT",
    each: Shape::Table(&[
        Key {
            name: "examples",
            about: "Examples of requests with this intent.",
            shape: Shape::Texts(Form::Text),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::InstructsModels, Stricter::Never),
        },
        Key {
            name: "tools",
            about: "Tools that can serve it.",
            shape: Shape::Texts(Form::Tool),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::InstructsModels, Stricter::Never),
        },
        Key {
            name: "context",
            about: "Information that is needed to serve it.",
            shape: Shape::Texts(Form::Text),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::InstructsModels, Stricter::Never),
        },
        Key {
            name: "fallbacks",
            about: "Alternatives if its tools fail.",
            shape: Shape::Texts(Form::Text),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::InstructsModels, Stricter::Never),
        },
    ]),
    fixed: &[Key {
        name: "threshold",
        about: "The least confidence at which an intent is recognised.",
        shape: Shape::Fraction,
        default: DefaultValue::Number(0.5),
        effect: KeyEffect::Harmless,
    }],
};

const GAPS: &[Key] = &[
    Key {
        name: "check",
        about: "Whether missing tools are detected before a run.",
        shape: Shape::Boolean,
        default: DefaultValue::Boolean(true),
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "threshold",
        about: "The least probability at which a missing tool is reported before a run.",
        shape: Shape::Fraction,
        default: DefaultValue::Number(0.9),
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "ask_model",
        about: "Whether the model is asked which capabilities a task needs. Its answer is compared with the tools.",
        shape: Shape::Boolean,
        default: DefaultValue::Boolean(false),
        effect: KeyEffect::Harmless,
    },
];

const FILES: &[Key] = &[
    Key {
        name: "roots",
        about: "The directories that file tools may access, relative to the directory of this file. Without any, file tools have no access.",
        shape: Shape::Texts(Form::Path),
        default: DefaultValue::Texts(&[]),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Inside),
    },
    Key {
        name: "max_bytes",
        about: "The largest file that is read or written.",
        shape: Shape::Integer(BYTES),
        default: DefaultValue::Integer(1_048_576),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
];

const HTTP: &[Key] = &[
    Key {
        name: "hosts",
        about: "The hosts that web tools may contact: `example.org`, `*.example.org` for its subdomains, or `*` for all public hosts. A port may follow, as in `example.org:8443`.",
        shape: Shape::Texts(Form::Host),
        default: DefaultValue::Texts(&[]),
        effect: KeyEffect::Needs(
            KeyPower::SendsData,
            Stricter::Fewer {
                unset: Unset::Nothing,
            },
        ),
    },
    Key {
        name: "max_bytes",
        about: "The largest response that is accepted.",
        shape: Shape::Integer(BYTES),
        default: DefaultValue::Integer(2_097_152),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
    Key {
        name: "timeout_seconds",
        about: "How long a single request may take, redirects included.",
        shape: Shape::Integer(TIMEOUT_RANGE),
        default: DefaultValue::Integer(20),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
    Key {
        name: "allow_private",
        about: "Whether listed hosts with a private or local address may be contacted.",
        shape: Shape::Boolean,
        default: DefaultValue::Boolean(false),
        effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::False { unset: false }),
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
        about: "The URL of a SearxNG server.",
        shape: Shape::Text(Form::Url),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
    },
    Key {
        name: "max_results",
        about: "The most results that a search returns.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 50,
            unit: "results",
        }),
        default: DefaultValue::Integer(10),
        effect: KeyEffect::Harmless,
    },
];

const AUTOMATION: &[Key] = &[Key {
    name: "endpoint",
    about: "The URL of a service that drives a browser.",
    shape: Shape::Text(Form::Url),
    default: DefaultValue::Nothing,
    effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
}];
