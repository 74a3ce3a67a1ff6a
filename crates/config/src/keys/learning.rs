//! The keys of `learning`.

use super::{Default, Key, Range, Shape};
use crate::form::Form;

pub(super) const LEARNING: &[Key] = &[
    Key {
        name: "enabled",
        about: "Whether strategies are recalled for tasks and learned from runs.",
        shape: Shape::Boolean,
        default: Default::Boolean(true),
    },
    Key {
        name: "frozen",
        about: "Whether the playbook is only read, and stays as it is.",
        shape: Shape::Boolean,
        default: Default::Boolean(false),
    },
    Key {
        name: "recall",
        about: "How many strategies a model is shown at most.",
        shape: Shape::Integer(Range {
            min: 0,
            max: 20,
            unit: "strategies",
        }),
        default: Default::Integer(3),
    },
    Key {
        name: "similarity_floor",
        about: "How similar to the task a strategy must be to be shown.",
        shape: Shape::Fraction,
        default: Default::Number(0.25),
    },
    Key {
        name: "min_confidence",
        about: "A run of which the model is less sure than this is no success to learn from.",
        shape: Shape::Fraction,
        default: Default::Number(0.5),
    },
    Key {
        name: "checker",
        about: "A command that says whether an answer is right: it reads the run as JSON and ends with 0 if it is, 1 if not, and anything else if that cannot be told.",
        shape: Shape::Texts(Form::Text),
        default: Default::Texts(&[]),
    },
    Key {
        name: "wording",
        about: "Whether the model puts what is learned in its own words, which are checked.",
        shape: Shape::Boolean,
        default: Default::Boolean(false),
    },
    Key {
        name: "max_strategies",
        about: "How many strategies of a domain are in use at most.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 1_000_000,
            unit: "strategies",
        }),
        default: Default::Integer(500),
    },
    Key {
        name: "max_tokens",
        about: "How many tokens their words have at most.",
        shape: Shape::Integer(Range {
            min: 100,
            max: 100_000_000,
            unit: "tokens",
        }),
        default: Default::Integer(60_000),
    },
    Key {
        name: "unused_after",
        about: "After how many runs that neither prove nor recall it a strategy is retired.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 1_000_000_000,
            unit: "runs",
        }),
        default: Default::Integer(2_000),
    },
];
