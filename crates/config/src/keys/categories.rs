//! The keys of categories and their tools, and of rate limits, which several tables have.

use super::{DefaultValue, Key, Map, Range, Shape};
use crate::effect::{KeyEffect, KeyPower, Stricter};
use crate::form::Form;

pub(super) const CATEGORIES: Map = Map {
    names: Form::Category,
    placeholder: "CATEGORY",
    each: Shape::Table(&[
        Key {
            name: "enabled",
            about: "Whether its tools can be used.",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(true),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::False { unset: true }),
        },
        Key {
            name: "permissions",
            about: "The permissions that its tools require of the principal.",
            shape: Shape::Texts(Form::Permission),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::More),
        },
        Key {
            name: "schema",
            about: "The type of its global_config, a record type such as `{region: Text, page_size: Maybe Int}`. Declares a category that is not predefined.",
            shape: Shape::Text(Form::Record),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Harmless,
        },
        Key {
            name: "global_config",
            about: "Values for all of its tools. A parameter of that name gets the value if a call omits it.",
            shape: Shape::Anything,
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
        },
        Key {
            name: "rate_limits",
            about: "The rate limits of all of its tools together.",
            shape: Shape::Table(RATE_LIMITS),
            default: DefaultValue::Nothing,
            effect: KeyEffect::ByKey,
        },
        Key {
            name: "environment_overrides",
            about: "Overrides for single environments.",
            shape: Shape::Map(&CATEGORY_OVERRIDES),
            default: DefaultValue::Nothing,
            effect: KeyEffect::ByKey,
        },
        Key {
            name: "tools",
            about: "Settings of single tools. A tool that is listed here belongs to this category.",
            shape: Shape::Map(&TOOLS),
            default: DefaultValue::Nothing,
            effect: KeyEffect::NewEntry(KeyPower::LoosensRules),
        },
    ]),
    fixed: &[],
};

const CATEGORY_OVERRIDES: Map = Map {
    names: Form::Environment,
    placeholder: "ENVIRONMENT",
    each: Shape::Table(&[ENABLED_THERE]),
    fixed: &[],
};

const ENABLED_THERE: Key = Key {
    name: "enabled",
    about: "Whether it can be used in this environment.",
    shape: Shape::Boolean,
    default: DefaultValue::Nothing,
    effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::False { unset: false }),
};

const TOOLS: Map = Map {
    names: Form::Tool,
    placeholder: "TOOL",
    each: Shape::Table(&[
        Key {
            name: "enabled",
            about: "Whether it can be used.",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(true),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::False { unset: true }),
        },
        Key {
            name: "permissions",
            about: "The permissions that it requires in addition to those of its category.",
            shape: Shape::Texts(Form::Permission),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::More),
        },
        PARAMETERS,
        LIMITS_OF_A_TOOL,
        TIMEOUT,
        Key {
            name: "environment_overrides",
            about: "Overrides for single environments.",
            shape: Shape::Map(&TOOL_OVERRIDES),
            default: DefaultValue::Nothing,
            effect: KeyEffect::ByKey,
        },
    ]),
    fixed: &[],
};

const TOOL_OVERRIDES: Map = Map {
    names: Form::Environment,
    placeholder: "ENVIRONMENT",
    each: Shape::Table(&[ENABLED_THERE, PARAMETERS, LIMITS_OF_A_TOOL, TIMEOUT]),
    fixed: &[],
};

const PARAMETERS: Key = Key {
    name: "parameters",
    about: "The values of parameters that a call omits.",
    shape: Shape::Anything,
    default: DefaultValue::Nothing,
    effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
};

const LIMITS_OF_A_TOOL: Key = Key {
    name: "rate_limits",
    about: "The rate limits of the tool.",
    shape: Shape::Table(RATE_LIMITS),
    default: DefaultValue::Nothing,
    effect: KeyEffect::ByKey,
};

const TIMEOUT: Key = Key {
    name: "timeout_seconds",
    about: "How long a call may take. Defaults to the timeout in the specification, else to 30 seconds.",
    shape: Shape::Integer(TIMEOUT_RANGE),
    default: DefaultValue::Nothing,
    effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::LowerThanSet),
};

pub(super) const TIMEOUT_RANGE: Range = Range {
    min: 1,
    max: 300,
    unit: "seconds",
};

const POSITIVE: Shape = Shape::Integer(Range {
    min: 1,
    max: 4_294_967_295,
    unit: "",
});

pub(super) const RATE_LIMITS: &[Key] = &[
    Key {
        name: "per_second",
        about: "Calls started within a second.",
        shape: POSITIVE,
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
    Key {
        name: "per_minute",
        about: "Calls started within a minute.",
        shape: POSITIVE,
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
    Key {
        name: "per_hour",
        about: "Calls started within an hour.",
        shape: POSITIVE,
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
    Key {
        name: "per_day",
        about: "Calls started within a day.",
        shape: POSITIVE,
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
    Key {
        name: "concurrent",
        about: "Calls running at the same time.",
        shape: POSITIVE,
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Lower),
    },
];
