//! The keys of servers.

use super::{DefaultValue, Key, Map, Range, Shape};
use crate::effect::{KeyEffect, KeyPower, Stricter, Unset};
use crate::form::Form;

pub(super) const SERVERS: Map = Map {
    names: Form::Server,
    placeholder: "SERVER",
    each: Shape::Table(&[
        Key {
            name: "command",
            about: "The program of the server: a path relative to the directory of this file, or a name that is looked up in PATH. It is not a shell command.",
            shape: Shape::Text(Form::Path),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::Never),
        },
        Key {
            name: "arguments",
            about: "The arguments of the program.",
            shape: Shape::Texts(Form::Argument),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::Never),
        },
        Key {
            name: "directory",
            about: "The working directory of the program, relative to the directory of this file.",
            shape: Shape::Text(Form::Path),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::Never),
        },
        Key {
            name: "environment",
            about: "The environment variables of the program in addition to PATH, HOME and LANG. `env:NAME` is the value of the variable NAME.",
            shape: Shape::Map(&ENVIRONMENT),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::Never),
        },
        Key {
            name: "parts",
            about: "Files and directories of the program, relative to the directory of this file. If one of them changes, the change must be accepted before the program starts again.",
            shape: Shape::Texts(Form::Path),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::More),
        },
        Key {
            name: "files",
            about: "The files and directories that the program reads, relative to the directory of this file. It can open no others, besides its working directory and those of the system.",
            shape: Shape::Texts(Form::Path),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(
                KeyPower::RunsPrograms,
                Stricter::Fewer {
                    unset: Unset::Everything,
                },
            ),
        },
        Key {
            name: "writable_files",
            about: "The files and directories that the program also writes, relative to the directory of this file.",
            shape: Shape::Texts(Form::Path),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(
                KeyPower::RunsPrograms,
                Stricter::Fewer {
                    unset: Unset::Everything,
                },
            ),
        },
        Key {
            name: "offline",
            about: "Whether the program starts without a network.",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(false),
            effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::True { unset: false }),
        },
        Key {
            name: "url",
            about: "The URL of the server, if it is not a program.",
            shape: Shape::Text(Form::Url),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
        },
        Key {
            name: "headers",
            about: "The headers of every request. `env:NAME` at the end is the value of the variable NAME.",
            shape: Shape::Map(&HEADERS),
            default: DefaultValue::Nothing,
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
        },
        Key {
            name: "oauth",
            about: "How to get authorization for the server with OAuth.",
            shape: Shape::Table(OAUTH),
            default: DefaultValue::Nothing,
            effect: KeyEffect::ByKey,
        },
        Key {
            name: "enabled",
            about: "Whether the server is used.",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(true),
            effect: KeyEffect::Needs(KeyPower::RunsPrograms, Stricter::False { unset: true }),
        },
        Key {
            name: "trusted",
            about: "Whether the server's own hints about its tools may lower their risk.",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(false),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::False { unset: false }),
        },
        Key {
            name: "envelope",
            about: "Whether answers of the server's tools are read as envelopes, so that they can report errors and ask for approvals.",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(false),
            effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::False { unset: false }),
        },
        Key {
            name: "sampling",
            about: "Whether the server may request completions from the model of a run (sampling).",
            shape: Shape::Boolean,
            default: DefaultValue::Boolean(false),
            effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::False { unset: false }),
        },
        Key {
            name: "start_timeout_seconds",
            about: "How long the server may take until its first answer.",
            shape: Shape::Integer(Range {
                min: 1,
                max: 600,
                unit: "seconds",
            }),
            default: DefaultValue::Integer(60),
            effect: KeyEffect::Harmless,
        },
    ]),
    fixed: &[],
};

const ENVIRONMENT: Map = Map {
    names: Form::Variable,
    placeholder: "VARIABLE",
    each: Shape::Text(Form::Given),
    fixed: &[],
};

const HEADERS: Map = Map {
    names: Form::Header,
    placeholder: "HEADER",
    each: Shape::Text(Form::Given),
    fixed: &[],
};

const OAUTH: &[Key] = &[
    Key {
        name: "client_id",
        about: "The client ID, if Windlass is registered with the authorization server.",
        shape: Shape::Text(Form::Text),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
    },
    Key {
        name: "client_secret",
        about: "The client secret: `env:NAME`, the variable that contains it.",
        shape: Shape::Text(Form::Given),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
    },
    Key {
        name: "scopes",
        about: "The scopes to request, if not those that the server names.",
        shape: Shape::Texts(Form::Text),
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::SendsData, Stricter::Never),
    },
];
