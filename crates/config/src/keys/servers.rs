//! The keys of servers.

use super::{Default, Key, Map, Range, Shape};
use crate::form::Form;

pub(super) const SERVERS: Map = Map {
    names: Form::Server,
    placeholder: "SERVER",
    each: Shape::Table(&[
        Key {
            name: "command",
            about: "The program that is the server: a path from the directory of this file, or a name that is looked up in PATH. No shell reads it.",
            shape: Shape::Text(Form::Path),
            default: Default::Nothing,
        },
        Key {
            name: "arguments",
            about: "What the program is started with.",
            shape: Shape::Texts(Form::Argument),
            default: Default::Nothing,
        },
        Key {
            name: "directory",
            about: "Where the program is started, from the directory of this file.",
            shape: Shape::Text(Form::Path),
            default: Default::Nothing,
        },
        Key {
            name: "environment",
            about: "The variables that the program gets besides PATH, HOME and LANG; `env:NAME` is the value of the variable NAME.",
            shape: Shape::Map(&ENVIRONMENT),
            default: Default::Nothing,
        },
        Key {
            name: "parts",
            about: "Files and directories that belong to the program, from the directory of this file: when one of them changes, somebody has to agree before it is started again.",
            shape: Shape::Texts(Form::Path),
            default: Default::Nothing,
        },
        Key {
            name: "url",
            about: "The address of the server, if it is none that is started.",
            shape: Shape::Text(Form::Url),
            default: Default::Nothing,
        },
        Key {
            name: "headers",
            about: "What is sent with every request; `env:NAME` at the end is the value of the variable NAME.",
            shape: Shape::Map(&HEADERS),
            default: Default::Nothing,
        },
        Key {
            name: "oauth",
            about: "How to get leave from whoever guards the server.",
            shape: Shape::Table(OAUTH),
            default: Default::Nothing,
        },
        Key {
            name: "enabled",
            about: "Whether the server is used.",
            shape: Shape::Boolean,
            default: Default::Boolean(true),
        },
        Key {
            name: "trusted",
            about: "Whether what the server says of its own tools may lower their risk.",
            shape: Shape::Boolean,
            default: Default::Boolean(false),
        },
        Key {
            name: "sampling",
            about: "Whether the server may ask the model of a run something.",
            shape: Shape::Boolean,
            default: Default::Boolean(false),
        },
        Key {
            name: "start_timeout_seconds",
            about: "How long the server may take until it answers for the first time.",
            shape: Shape::Integer(Range {
                min: 1,
                max: 600,
                unit: "seconds",
            }),
            default: Default::Integer(60),
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
        about: "The name that this program was registered under beforehand, if it was.",
        shape: Shape::Text(Form::Text),
        default: Default::Nothing,
    },
    Key {
        name: "client_secret",
        about: "What proves that name: `env:NAME`, the variable that holds it.",
        shape: Shape::Text(Form::Given),
        default: Default::Nothing,
    },
    Key {
        name: "scopes",
        about: "What leave is asked for, if not what the server says.",
        shape: Shape::Texts(Form::Text),
        default: Default::Nothing,
    },
];
