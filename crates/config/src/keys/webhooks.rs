//! The keys of webhooks. A project cannot redirect or silence a webhook of the user or the administrator.

use super::{DefaultValue, Key, Map, Range, Shape};
use crate::effect::{KeyEffect, KeyPower, Stricter};
use crate::form::Form;

pub(super) const WEBHOOKS: Map = Map {
    names: Form::Webhook,
    placeholder: "WEBHOOK",
    each: Shape::Table(&[
        Key {
            name: "url",
            about: "Where events are sent, signed as Standard Webhooks specifies. Redirects are not followed.",
            shape: Shape::Text(Form::Url),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Same),
        },
        Key {
            name: "secret",
            about: "The secret that the receiver has, too: `env:NAME`, the variable that contains it. It is `whsec_` and base64; `windlass webhooks secret` makes one.",
            shape: Shape::Text(Form::Given),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Same),
        },
        Key {
            name: "secret_file",
            about: "The file with the secret, relative to the directory of this file. A second secret on the next line also signs, while one replaces the other.",
            shape: Shape::Text(Form::Path),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Same),
        },
        Key {
            name: "command",
            about: "A program with its arguments that is started for each event instead. It reads the event as JSON and exits with 0. It is found from the directory of this file, and is not a shell command.",
            shape: Shape::Texts(Form::Argument),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::Same),
        },
        Key {
            name: "environment",
            about: "The names of the environment variables that the command gets, in addition to PATH, HOME and LANG.",
            shape: Shape::Texts(Form::Variable),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Same),
        },
        Key {
            name: "events",
            about: "The events that are sent; all of them if absent.",
            shape: Shape::Texts(Form::WebhookEvent),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Same),
        },
        Key {
            name: "arguments",
            about: "Whether events contain the arguments of calls. Without, they have ids, names and times only.",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(false),
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::False { unset: false }),
        },
        Key {
            name: "server",
            about: "The address of the server, such as `https://windlass.example.org`, with which the links in events begin. Without it, they are paths.",
            shape: Shape::Text(Form::Url),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Same),
        },
        Key {
            name: "expiring_seconds",
            about: "How long before an approval expires it is announced; at the latest when half of its time has passed.",
            shape: Shape::Integer(Range {
                min: 1,
                max: 86_400,
                unit: "seconds",
            }),
            default: DefaultValue::Integer(900),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
        },
        Key {
            name: "timeout_seconds",
            about: "How long the receiver or the command may take.",
            shape: Shape::Integer(Range {
                min: 1,
                max: 60,
                unit: "seconds",
            }),
            default: DefaultValue::Integer(10),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
        },
        Key {
            name: "attempts",
            about: "How often an event is sent until it is received. After that it waits for `windlass webhooks retry`.",
            shape: Shape::Integer(Range {
                min: 1,
                max: 20,
                unit: "attempts",
            }),
            default: DefaultValue::Integer(10),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
        },
        Key {
            name: "retry_seconds",
            about: "How long after the first attempt the second one is made. Each further wait is four times as long, up to 12 hours.",
            shape: Shape::Integer(Range {
                min: 1,
                max: 3_600,
                unit: "seconds",
            }),
            default: DefaultValue::Integer(5),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
        },
        Key {
            name: "enabled",
            about: "Whether events are sent. While they are not, they wait.",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(true),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
        },
    ]),
    fixed: &[],
};
