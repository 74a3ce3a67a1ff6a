//! The keys of `budgets`, `prices` and `retention`.

use super::{DefaultValue, Key, Map, Range, Shape};
use crate::effect::{KeyEffect, KeyPower, Stricter};
use crate::form::Form;

/// The budgets of all runs.
pub(super) const BUDGETS_OF_ALL: Key = Key {
    name: "budgets",
    about: "What all runs may use up: each of them, and all together in a day.",
    shape: Shape::Table(BUDGETS),
    default: DefaultValue::Nothing,
    effect: KeyEffect::ByKey,
};

/// The budgets of the runs of an agent.
pub(super) const BUDGETS_OF_AN_AGENT: Key = Key {
    name: "budgets",
    about: "What the runs of the agent may use up, in addition to `budgets` of all runs.",
    ..BUDGETS_OF_ALL
};

/// The budgets of the runs for a principal.
pub(super) const BUDGETS_OF_A_PRINCIPAL: Key = Key {
    name: "budgets",
    about: "What the runs for it may use up, in addition to `budgets` of all runs.",
    ..BUDGETS_OF_ALL
};

const BUDGETS: &[Key] = &[
    Key {
        name: "run",
        about: "What one run may use up, with the runs that work for it.",
        shape: Shape::Table(BUDGET),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
    Key {
        name: "day",
        about: "What all of these runs may use up in one day, which begins at midnight UTC.",
        shape: Shape::Table(BUDGET),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
];

const BUDGET: &[Key] = &[
    Key {
        name: "tokens",
        about: "The most tokens of models, input and output.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 1_000_000_000_000,
            unit: "tokens",
        }),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
    Key {
        name: "dollars",
        about: "The most money in US dollars, for models and for tools that state their cost. A model without a price is not asked.",
        shape: Shape::Dollars,
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
];

/// The price of each model.
pub(super) const PRICES: Map = Map {
    names: Form::Text,
    placeholder: "MODEL",
    each: Shape::Table(PRICE),
    fixed: &[],
};

const PRICE: &[Key] = &[
    dollars("input", "US dollars for a million input tokens. Required."),
    dollars(
        "cached_input",
        "US dollars for a million input tokens that the provider reads from its cache. Defaults to `input`.",
    ),
    dollars(
        "cache_write",
        "US dollars for a million input tokens that the provider writes to its cache. Defaults to `input`.",
    ),
    dollars(
        "output",
        "US dollars for a million output tokens. Required.",
    ),
    Key {
        name: "long_above",
        about: "A request with more input tokens than this has the prices of `long`.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 1_000_000_000,
            unit: "tokens",
        }),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
    },
    Key {
        name: "long",
        about: "The prices of long requests.",
        shape: Shape::Table(LONG_PRICE),
        default: DefaultValue::Nothing,
        effect: KeyEffect::ByKey,
    },
];

const LONG_PRICE: &[Key] = &[
    dollars("input", "US dollars for a million input tokens. Required."),
    dollars(
        "cached_input",
        "US dollars for a million input tokens from the cache. Defaults to `input`.",
    ),
    dollars(
        "cache_write",
        "US dollars for a million input tokens written to the cache. Defaults to `input`.",
    ),
    dollars(
        "output",
        "US dollars for a million output tokens. Required.",
    ),
];

/// A lower price makes a budget of money last longer.
const fn dollars(name: &'static str, about: &'static str) -> Key {
    Key {
        name,
        about,
        shape: Shape::Dollars,
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Higher),
    }
}

/// Both a shorter and a longer period can be against what the owner of the store wants: the one destroys evidence, the
/// other keeps what was to be removed.
pub(super) const RETENTION: &[Key] = &[
    Key {
        name: "payloads",
        about: "How long after its end the prompts, arguments and results of a run are kept: such as \"12h\", \"7d\" or \"4w\", or \"never\" to remove them never.",
        shape: Shape::Text(Form::Period),
        default: DefaultValue::Text("7d"),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
    },
    Key {
        name: "audit",
        about: "How long after its end the record of a run is kept: who asked, decided and called what, digests and outcomes. Not shorter than `payloads`.",
        shape: Shape::Text(Form::Period),
        default: DefaultValue::Text("400d"),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
    },
    Key {
        name: "trace_files",
        about: "Whether the steps of each ended run are also written to `reasoning-traces/TASK_ID.json` in the data directory. The files are removed with the payloads.",
        shape: Shape::Boolean,
        default: DefaultValue::Boolean(false),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::False { unset: false }),
    },
];
