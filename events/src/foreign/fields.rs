//! Reading the fields of a JSON object: each absent, or of its kind and inside its bounds, or named as wrong.

use serde_json::{Map, Value};

use super::ForeignError;

/// The largest number up to which every whole number is one that every reader of JSON agrees on: 2^53.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
/// The longest text that is kept, characters.
const LONGEST_TEXT: usize = 300;

/// An object and where it stands in the file.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

impl<'a> Fields<'a> {
    /// The object at `path`.
    pub(super) fn of(value: &'a Value, path: &str) -> Result<Self, ForeignError> {
        match value {
            Value::Object(map) => Ok(Self { map, path: path.to_owned() }),
            _ => {
                let place = if path.is_empty() { "the file" } else { path };
                Err(ForeignError::new(place, format!("must be an object, not {}", kind(value))))
            }
        }
    }

    /// The path of one of its fields.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A field that is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Whether a field is there and says null.
    pub(super) fn is_null(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(Value::is_null)
    }

    /// An error at one of its fields.
    pub(super) fn wrong(&self, name: &str, message: impl Into<String>) -> ForeignError {
        ForeignError::new(self.path(name), message)
    }

    /// Refuses a field that is absent.
    pub(super) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, ForeignError> {
        value.ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// An object among its fields.
    pub(super) fn object(&self, name: &str) -> Result<Option<Fields<'a>>, ForeignError> {
        self.get(name).map(|value| Fields::of(value, &self.path(name))).transpose()
    }

    /// A number of at least 0.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, ForeignError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let Some(number) = value.as_f64() else {
            return Err(self.wrong(name, format!("must be a number, not {}", kind(value))));
        };
        if !(0.0..=LARGEST_EXACT).contains(&number) {
            return Err(self.wrong(name, format!("{value} is out of bounds: it must be from 0 to 2^53")));
        }
        Ok(Some(number))
    }

    /// A whole number of at least 0. Tools also write it as `12.0`.
    pub(super) fn count(&self, name: &str) -> Result<Option<u64>, ForeignError> {
        match self.number(name)? {
            Some(number) if number.fract() == 0.0 => Ok(Some(number as u64)),
            Some(number) => Err(self.wrong(name, format!("must be a whole number, not {number}"))),
            None => Ok(None),
        }
    }

    /// A whole number above 0 that an axis of a scenario can hold.
    pub(super) fn axis(&self, name: &str) -> Result<Option<u32>, ForeignError> {
        match self.count(name)? {
            None => Ok(None),
            Some(number) => match u32::try_from(number) {
                Ok(number @ 1..) => Ok(Some(number)),
                _ => Err(self.wrong(name, format!("{number} is out of bounds: it must be at least 1"))),
            },
        }
    }

    /// A whole number of at least 0 that is no larger than an axis may be.
    pub(super) fn whole(&self, name: &str) -> Result<Option<u32>, ForeignError> {
        let Some(number) = self.count(name)? else { return Ok(None) };
        u32::try_from(number).map(Some).map_err(|_| self.wrong(name, format!("{number} is out of bounds")))
    }

    /// As [`Self::axis`], where the file writes 0 for what there is none of.
    pub(super) fn axis_or_none(&self, name: &str) -> Result<Option<u32>, ForeignError> {
        if self.count(name)? == Some(0) { Ok(None) } else { self.axis(name) }
    }

    /// A text, shortened where it is very long.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, ForeignError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) if text.chars().any(char::is_control) => {
                Err(self.wrong(name, "must not hold control characters"))
            }
            Some(Value::String(text)) => Ok(Some(text.trim().chars().take(LONGEST_TEXT).collect())),
            Some(value) => Err(self.wrong(name, format!("must be a text, not {}", kind(value)))),
        }
    }

    /// Yes or no; also as the texts that shell scripts hand on.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, ForeignError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(value) => Err(self.wrong(name, format!("must be true or false, not {value}"))),
        }
    }

    /// The value that all numbers of a list have; nothing where they differ or there are none.
    pub(super) fn same(&self, name: &str) -> Option<u32> {
        let Some(Value::Array(items)) = self.get(name) else { return None };
        let first = items.first()?.as_u64()?;
        let all = items.iter().all(|item| item.as_u64() == Some(first));
        u32::try_from(first).ok().filter(|first| all && *first > 0)
    }
}

/// What a value is, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
