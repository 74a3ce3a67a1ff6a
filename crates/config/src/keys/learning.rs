//! The keys of `learning`.

use super::{DefaultValue, Key, Range, Shape};
use crate::effect::{KeyEffect, KeyPower, Stricter, Unset};
use crate::form::Form;

pub(super) const LEARNING: &[Key] = &[
    Key {
        name: "enabled",
        about: "Whether strategies are recalled for tasks and learned from runs.",
        shape: Shape::Boolean,
        default: DefaultValue::Boolean(true),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::False { unset: true }),
    },
    Key {
        name: "frozen",
        about: "Whether the playbook is read-only.",
        shape: Shape::Boolean,
        default: DefaultValue::Boolean(false),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::True { unset: false }),
    },
    Key {
        name: "recall",
        about: "The most strategies that a model is shown.",
        shape: Shape::Integer(Range {
            min: 0,
            max: 20,
            unit: "strategies",
        }),
        default: DefaultValue::Integer(3),
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "similarity_floor",
        about: "The least similarity to the task of a strategy that is shown.",
        shape: Shape::Fraction,
        default: DefaultValue::Number(0.33),
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "min_confidence",
        about: "A run counts as a success only if its confidence is above this.",
        shape: Shape::Fraction,
        default: DefaultValue::Number(0.5),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Higher),
    },
    Key {
        name: "checker",
        about: "A command that checks an answer. It reads the run as JSON and exits with 0 if the answer is correct, 1 if it is not, and another code if that is unknown.",
        shape: Shape::Texts(Form::Text),
        default: DefaultValue::Texts(&[]),
        effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::Never),
    },
    Key {
        name: "checker_environment",
        about: "The names of the environment variables that the command gets, in addition to PATH, HOME and LANG.",
        shape: Shape::Texts(Form::Variable),
        default: DefaultValue::Texts(&[]),
        effect: KeyEffect::Needs(
            KeyPower::SendsData,
            Stricter::Fewer {
                unset: Unset::Nothing,
            },
        ),
    },
    Key {
        name: "wording",
        about: "Whether the model rewords what is learned. Its wording is checked.",
        shape: Shape::Boolean,
        default: DefaultValue::Boolean(false),
        effect: KeyEffect::Harmless,
    },
    Key {
        name: "max_strategies",
        about: "The most strategies of a domain that are in use.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 1_000_000,
            unit: "strategies",
        }),
        default: DefaultValue::Integer(500),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Never),
    },
    Key {
        name: "max_tokens",
        about: "The most tokens that the texts of these strategies have.",
        shape: Shape::Integer(Range {
            min: 100,
            max: 100_000_000,
            unit: "tokens",
        }),
        default: DefaultValue::Integer(60_000),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Never),
    },
    Key {
        name: "unused_after",
        about: "The number of runs that neither confirm nor recall a strategy after which it is retired.",
        shape: Shape::Integer(Range {
            min: 1,
            max: 1_000_000_000,
            unit: "runs",
        }),
        default: DefaultValue::Integer(2_000),
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Never),
    },
];
