//! The keys of categories and their tools, and of rate limits, which stand in many places.

use super::{Default, Key, Map, Range, Shape};
use crate::form::Form;

pub(super) const CATEGORIES: Map = Map {
    names: Form::Category,
    placeholder: "CATEGORY",
    each: Shape::Table(&[
        Key {
            name: "enabled",
            about: "Whether its tools can be used.",
            shape: Shape::Boolean,
            default: Default::Boolean(true),
        },
        Key {
            name: "permissions",
            about: "What its tools demand of whom they are called for.",
            shape: Shape::Texts(Form::Permission),
            default: Default::Nothing,
        },
        Key {
            name: "schema",
            about: "What its global_config can hold, as a record type such as `{region: Text, page_size: Maybe Int}`. A category that is not predefined is declared by it.",
            shape: Shape::Text(Form::Record),
            default: Default::Nothing,
        },
        Key {
            name: "global_config",
            about: "Values for all of its tools: a parameter of that name has the value when a call leaves it out.",
            shape: Shape::Anything,
            default: Default::Nothing,
        },
        Key {
            name: "rate_limits",
            about: "How many calls may be made to all of its tools together.",
            shape: Shape::Table(RATE_LIMITS),
            default: Default::Nothing,
        },
        Key {
            name: "environment_overrides",
            about: "What is different in some environments.",
            shape: Shape::Map(&CATEGORY_OVERRIDES),
            default: Default::Nothing,
        },
        Key {
            name: "tools",
            about: "What is set for single tools, which belong to this category thereby.",
            shape: Shape::Map(&TOOLS),
            default: Default::Nothing,
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
    about: "Whether it can be used there.",
    shape: Shape::Boolean,
    default: Default::Nothing,
};

const TOOLS: Map = Map {
    names: Form::Tool,
    placeholder: "TOOL",
    each: Shape::Table(&[
        Key {
            name: "enabled",
            about: "Whether it can be used.",
            shape: Shape::Boolean,
            default: Default::Boolean(true),
        },
        Key {
            name: "permissions",
            about: "What it demands beside what its category demands.",
            shape: Shape::Texts(Form::Permission),
            default: Default::Nothing,
        },
        PARAMETERS,
        LIMITS_OF_A_TOOL,
        TIMEOUT,
        Key {
            name: "environment_overrides",
            about: "What is different in some environments.",
            shape: Shape::Map(&TOOL_OVERRIDES),
            default: Default::Nothing,
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
    about: "The values that its parameters have when a call leaves them out.",
    shape: Shape::Anything,
    default: Default::Nothing,
};

const LIMITS_OF_A_TOOL: Key = Key {
    name: "rate_limits",
    about: "How many calls may be made to it.",
    shape: Shape::Table(RATE_LIMITS),
    default: Default::Nothing,
};

const TIMEOUT: Key = Key {
    name: "timeout_seconds",
    about: "How long a call may take; what its specification says if this is left out, else 30 seconds.",
    shape: Shape::Integer(TIMEOUT_RANGE),
    default: Default::Nothing,
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
        about: "Calls begun within a second.",
        shape: POSITIVE,
        default: Default::Nothing,
    },
    Key {
        name: "per_minute",
        about: "Calls begun within a minute.",
        shape: POSITIVE,
        default: Default::Nothing,
    },
    Key {
        name: "per_hour",
        about: "Calls begun within an hour.",
        shape: POSITIVE,
        default: Default::Nothing,
    },
    Key {
        name: "per_day",
        about: "Calls begun within a day.",
        shape: POSITIVE,
        default: Default::Nothing,
    },
    Key {
        name: "concurrent",
        about: "Calls running at the same time.",
        shape: POSITIVE,
        default: Default::Nothing,
    },
];
