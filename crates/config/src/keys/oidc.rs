//! The keys of the issuer of tokens. None has a built-in value: without the table, no issuer is accepted.

use super::{DefaultValue, Key, Map, Shape};
use crate::effect::{KeyEffect, KeyPower, Stricter};
use crate::form::Form;

pub(super) const OIDC: &[Key] = &[
    key(
        "issuer",
        "The URL of the issuer, as the claim `iss` of its tokens has it.",
        Shape::Text(Form::Url),
    ),
    key(
        "audience",
        "The name of this server at the issuer: the claim `aud` of tokens must contain it.",
        Shape::Text(Form::Text),
    ),
    key(
        "principal_claim",
        "The claim that names the principal of a token. `sub` if it is not set.",
        Shape::Text(Form::Text),
    ),
    key(
        "roles_claim",
        "The claim with the roles of a token: a list, or words with spaces between them. Dots lead into objects, as in `realm_access.roles`. `roles` if it is not set.",
        Shape::Text(Form::Text),
    ),
    key(
        "roles",
        "The scopes that each role has. A token whose roles are not listed may do nothing.",
        Shape::Map(&ROLES),
    ),
    key(
        "tenant",
        "The tenant of all tokens. That of the server if it is not set.",
        Shape::Text(Form::Text),
    ),
    key(
        "tenant_claim",
        "The claim that names the tenant of a token, instead of `tenant`.",
        Shape::Text(Form::Text),
    ),
];

/// A key of the table, which is one value for trust.
const fn key(name: &'static str, about: &'static str, shape: Shape) -> Key {
    Key {
        name,
        about,
        shape,
        default: DefaultValue::Nothing,
        effect: KeyEffect::Needs(KeyPower::LoosensRules, Stricter::Same),
    }
}

const ROLES: Map = Map {
    names: Form::Text,
    placeholder: "ROLE",
    each: Shape::Texts(Form::Scope),
    fixed: &[],
};
