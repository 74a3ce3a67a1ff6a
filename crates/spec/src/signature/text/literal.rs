//! Default values in the text form: JSON, read from the same tokens as the rest, so single-quoted
//! strings and line breaks are allowed here too.

use serde_json::{Map, Value};
use windlass_gram::Diagnostic;

use super::lexer::Kind;
use super::parser::Parser;
use super::{Reported, code};
use crate::signature::MAX_DEPTH;

impl Parser<'_> {
    /// Reads a JSON value nested at most `levels` deep.
    pub(super) fn json(&mut self, levels: usize) -> Result<Value, Reported> {
        let Some(below) = levels.checked_sub(1) else {
            let message = format!("this default is nested deeper than {MAX_DEPTH} levels");
            self.report
                .push(Diagnostic::error(code::DEPTH, self.span(), message));
            self.abandon();
            return Err(Reported);
        };
        let value = match self.kind() {
            Kind::Text(text) => Value::from(text.as_str()),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Word(word) => match word.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "null" => Value::Null,
                _ => return Err(self.not_json()),
            },
            Kind::Mark('[') => return self.json_array(below),
            Kind::Mark('{') => return self.json_object(below),
            _ => return Err(self.not_json()),
        };
        self.advance();
        Ok(value)
    }

    fn json_array(&mut self, below: usize) -> Result<Value, Reported> {
        self.advance();
        let mut items = Vec::new();
        while !self.take_mark(']') {
            items.push(self.json(below)?);
            if !self.take_mark(',') && !self.at_mark(']') {
                return Err(self.expected("`,` or `]` after an item of the default"));
            }
        }
        Ok(Value::Array(items))
    }

    fn json_object(&mut self, below: usize) -> Result<Value, Reported> {
        self.advance();
        let mut entries = Map::new();
        while !self.take_mark('}') {
            let span = self.span();
            let Kind::Text(key) = self.kind() else {
                return Err(self.expected("a key in quotes or `}` in the default"));
            };
            let key = key.clone();
            self.advance();
            if !self.take_mark(':') {
                return Err(self.expected("`:` after a key of the default"));
            }
            let value = self.json(below)?;
            if entries.insert(key, value).is_some() {
                let message = "this key is given twice in the default";
                self.report
                    .push(Diagnostic::error(code::DUPLICATE_KEY, span, message));
            }
            if !self.take_mark(',') && !self.at_mark('}') {
                return Err(self.expected("`,` or `}` after an entry of the default"));
            }
        }
        Ok(Value::Object(entries))
    }

    fn not_json(&mut self) -> Reported {
        let hint = match self.kind() {
            Kind::Word(word) => match word.as_str() {
                "True" | "TRUE" => "write `true`".to_owned(),
                "False" | "FALSE" => "write `false`".to_owned(),
                "None" | "Nothing" | "nil" | "undefined" => {
                    "remove the default; `Maybe` alone makes the value optional".to_owned()
                }
                _ => format!("put a string in quotes: \"{}\"", super::shortened(word)),
            },
            _ => "a default is a JSON value, such as `3`, `\"text\"`, `true` or `[]`".to_owned(),
        };
        self.expected_with("a JSON value as the default", Some(hint))
    }
}
