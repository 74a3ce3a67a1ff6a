//! The calls of one answer, put together from the pieces they arrive in. The library can do this
//! too, but it makes room for as many calls as a server's numbering claims there are, fills gaps
//! with copies and joins calls that have the same number. Here a call is what has a name.

use serde_json::{Map, Value};
use windlass_core::model::RequestedArguments;

/// The calls that have begun.
#[derive(Default)]
pub(super) struct Calls(Vec<Begun>);

/// What has arrived of a call.
struct Begun {
    id: String,
    name: String,
    arguments: String,
    extent: Extent,
}

/// Which call a piece belonged to, and what is known of it.
pub(super) struct Heard<'a> {
    pub(super) position: usize,
    pub(super) name: &'a str,
    pub(super) length: usize,
}

impl Calls {
    /// Takes in more of a call's arguments. The first piece of a call has its name, and mostly
    /// its id; the library gives the others an id made from their number.
    pub(super) fn more(&mut self, id: &str, name: &str, arguments: &str) -> Heard<'_> {
        let position = self
            .continued(id, name)
            .unwrap_or_else(|| self.begin(id, name));
        let call = &mut self.0[position];
        if call.name.is_empty() {
            call.name = name.to_owned();
        }
        call.arguments.push_str(arguments);
        call.extent.read(arguments);
        self.heard(position)
    }

    /// Takes in all of a call's arguments so far.
    pub(super) fn so_far(&mut self, id: &str, name: &str, arguments: &str) -> Heard<'_> {
        let known = self.0.iter().position(|call| call.id == id);
        let position = known.unwrap_or_else(|| self.begin(id, name));
        self.0[position].arguments = arguments.to_owned();
        self.heard(position)
    }

    /// Takes in a call that arrives in one piece. Its id may be that of another.
    pub(super) fn whole(&mut self, name: &str, arguments: &Value) -> Heard<'_> {
        let position = self.begin("", name);
        if !arguments.is_null() {
            self.0[position].arguments = arguments.to_string();
        }
        self.heard(position)
    }

    /// Names and arguments, in order; arguments that are no JSON are the text they are.
    pub(super) fn finish(self) -> impl Iterator<Item = (String, RequestedArguments)> {
        self.0.into_iter().map(|call| {
            let arguments = match serde_json::from_str(&call.arguments) {
                Ok(value) => RequestedArguments::Json(value),
                Err(_) if call.arguments.trim().is_empty() => {
                    RequestedArguments::Json(Value::Object(Map::new()))
                }
                Err(_) => RequestedArguments::Text(call.arguments),
            };
            (call.name, arguments)
        })
    }

    /// The call that a piece continues. One whose arguments are complete is not continued: then
    /// the server has given two calls the same number or the same id.
    fn continued(&self, id: &str, name: &str) -> Option<usize> {
        let is_open = |call: &Begun| !call.extent.is_complete;
        let fits = |call: &Begun| {
            let is_named_alike = name.is_empty() || call.name.is_empty() || call.name == name;
            call.id == id && is_named_alike && is_open(call)
        };
        let same = self.0.iter().rposition(fits);
        if same.is_some() || !name.is_empty() {
            return same;
        }
        let numbered = id
            .strip_prefix("call_")
            .and_then(|number| number.parse().ok());
        numbered
            .filter(|number| self.0.get(*number).is_some_and(is_open))
            .or_else(|| self.0.len().checked_sub(1))
    }

    fn begin(&mut self, id: &str, name: &str) -> usize {
        self.0.push(Begun {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            extent: Extent::default(),
        });
        self.0.len() - 1
    }

    fn heard(&self, position: usize) -> Heard<'_> {
        let call = &self.0[position];
        Heard {
            position,
            name: &call.name,
            length: call.arguments.len(),
        }
    }
}

/// Follows the brackets of JSON as it arrives, to see where its first value ends.
#[derive(Default)]
struct Extent {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_complete: bool,
}

impl Extent {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}
