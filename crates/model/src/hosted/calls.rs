//! Assembles the calls of one answer from their pieces. Servers number and identify them in different ways,
//! so every call needs a name, and no number allocates anything.

use serde_json::{Map, Value};
use windlass_core::model::RequestedArguments;
use windlass_spec::number::read_json;

use super::limits::{ExceededLimit, MOST_LEVELS};

/// The calls of an answer so far.
#[derive(Default)]
pub(super) struct Calls(Vec<PartialCall>);

/// The part of a call that has arrived.
struct PartialCall {
    key: CallKey<String>,
    name: String,
    arguments: String,
    /// Arguments that arrived as JSON.
    json: Option<Value>,
    extent: Extent,
}

/// How a piece says which call it belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKey<T> {
    Id(T),
    Number(u64),
}

impl CallKey<&str> {
    fn is(&self, other: &CallKey<String>) -> bool {
        match (self, other) {
            (CallKey::Id(id), CallKey::Id(other)) => id == other,
            (CallKey::Number(number), CallKey::Number(other)) => number == other,
            (CallKey::Id(_), CallKey::Number(_)) | (CallKey::Number(_), CallKey::Id(_)) => false,
        }
    }

    fn to_owned(self) -> CallKey<String> {
        match self {
            CallKey::Id(id) => CallKey::Id(id.to_owned()),
            CallKey::Number(number) => CallKey::Number(number),
        }
    }
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The name of a call; empty if it has not arrived.
    pub(super) fn name(&self, position: usize) -> &str {
        &self.0[position].name
    }

    /// The length of a call's arguments.
    pub(super) fn length(&self, position: usize) -> usize {
        self.0[position].arguments.len()
    }

    /// The call that a piece belongs to, which may be a new one. The first piece of a call has its name, and
    /// usually its id.
    pub(super) fn find_or_begin(&mut self, key: CallKey<&str>, name: &str) -> usize {
        let position = self
            .continued_call(key, name)
            .unwrap_or_else(|| self.begin(key, name));
        let call = &mut self.0[position];
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        position
    }

    /// Begins a call.
    pub(super) fn begin(&mut self, key: CallKey<&str>, name: &str) -> usize {
        self.0.push(PartialCall {
            key: key.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            json: None,
            extent: Extent::default(),
        });
        self.0.len() - 1
    }

    /// The call with this number.
    pub(super) fn numbered(&self, number: u64) -> Option<usize> {
        let key = CallKey::Number(number);
        self.0.iter().rposition(|call| key.is(&call.key))
    }

    /// Appends to the arguments of a call.
    pub(super) fn append(&mut self, position: usize, text: &str) -> Result<(), ExceededLimit> {
        let call = &mut self.0[position];
        call.arguments.push_str(text);
        call.extent.read(text)
    }

    /// Replaces the arguments of a call.
    pub(super) fn replace(&mut self, position: usize, text: &str) -> Result<(), ExceededLimit> {
        let call = &mut self.0[position];
        call.arguments.clear();
        call.extent = Extent::default();
        self.append(position, text)
    }

    /// Sets the arguments of a call to JSON.
    pub(super) fn set_json(&mut self, position: usize, json: Value) {
        let call = &mut self.0[position];
        // Its length counts like that of text.
        call.arguments = json.to_string();
        call.extent.is_complete = true;
        call.json = Some(json);
    }

    /// The names and arguments, in order. Arguments that are not JSON stay text.
    pub(super) fn finish(self) -> impl Iterator<Item = (String, RequestedArguments)> {
        self.0.into_iter().map(|call| {
            let json = match call.json {
                Some(json) => Ok(json),
                // A number that cannot be kept is refused where the text is read.
                None => read_json(&call.arguments),
            };
            let arguments = match json {
                Ok(value) => RequestedArguments::Json(value),
                Err(_) if call.arguments.trim().is_empty() => {
                    RequestedArguments::Json(Value::Object(Map::new()))
                }
                Err(_) => RequestedArguments::Text(call.arguments),
            };
            (call.name, arguments)
        })
    }

    /// The call that a piece continues. A call with complete arguments is not continued: then the server
    /// has given two calls the same number or id.
    fn continued_call(&self, key: CallKey<&str>, name: &str) -> Option<usize> {
        let is_open = |call: &PartialCall| !call.extent.is_complete;
        let fits = |call: &PartialCall| {
            let is_named_alike = name.is_empty() || call.name.is_empty() || call.name == name;
            key.is(&call.key) && is_named_alike && is_open(call)
        };
        let same = self.0.iter().rposition(fits);
        if same.is_some() || !name.is_empty() {
            return same;
        }
        let numbered = match key {
            CallKey::Number(number) => usize::try_from(number).ok(),
            CallKey::Id(_) => None,
        };
        numbered
            .filter(|number| self.0.get(*number).is_some_and(is_open))
            .or_else(|| self.0.len().checked_sub(1))
    }
}

/// Follows the brackets of JSON as it arrives, to find the end of its first value and its nesting.
#[derive(Default)]
struct Extent {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    is_complete: bool,
}

impl Extent {
    fn read(&mut self, text: &str) -> Result<(), ExceededLimit> {
        for byte in text.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.depth > MOST_LEVELS {
                        return Err(ExceededLimit::Depth(MOST_LEVELS));
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete |= self.depth == 0;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
