//! Reading a JSON object field by field, so that every wrong one is told, not just the first.

use serde_json::{Map, Value};

use crate::{
    config::FieldError,
    domain::{IdError, MAX_VERSION, Place, UnixMs},
    protocol::Patch,
};

/// Errors told of one body; more would help nobody.
const MAX_ERRORS: usize = 1_000;
/// Longest piece of an offending value that is told back, in bytes of JSON.
const MAX_TOLD_BYTES: usize = 200;

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

/// What reading a value gives.
pub(crate) type Read<T> = Result<T, Wrong>;

/// The errors found so far.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<FieldError>);

impl Errors {
    pub(crate) fn add(&mut self, path: &str, code: &str, value: &Value, detail: impl Into<String>) {
        if self.0.len() < MAX_ERRORS {
            self.0.push(FieldError {
                path: path.into(),
                code: code.into(),
                value: told(value),
                detail: detail.into(),
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_vec(self) -> Vec<FieldError> {
        self.0
    }

    /// All of them in one line.
    pub(crate) fn in_words(&self) -> String {
        let words: Vec<String> = self
            .0
            .iter()
            .map(|error| match error.path.as_str() {
                "" => error.detail.clone(),
                path => format!("{path}: {}", error.detail),
            })
            .collect();
        words.join("; ")
    }
}

fn told(value: &Value) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) => Value::Null,
        Value::String(text) if text.len() > MAX_TOLD_BYTES => {
            let cut = text.floor_char_boundary(MAX_TOLD_BYTES);
            Value::String(format!("{}…", &text[..cut]))
        }
        _ => value.clone(),
    }
}

/// An object whose fields are taken one by one; what is left at the end is unknown.
pub(crate) struct Object<'e> {
    fields: Map<String, Value>,
    path: String,
    errors: &'e mut Errors,
}

impl<'e> Object<'e> {
    /// Opens `value`, which stands at `path`.
    pub(crate) fn open(value: Value, path: &str, errors: &'e mut Errors) -> Option<Self> {
        if let Value::Object(fields) = value {
            return Some(Self {
                fields,
                path: path.into(),
                errors,
            });
        }
        errors.add(path, "wrong_type", &value, "must be an object");
        None
    }

    fn at(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.into()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn missing(&mut self, name: &str) {
        let path = self.at(name);
        self.errors.add(&path, "missing", &Value::Null, "is needed");
    }

    fn read<T>(
        &mut self,
        name: &str,
        value: &Value,
        read: impl FnOnce(&Value) -> Read<T>,
    ) -> Option<T> {
        match read(value) {
            Ok(read) => Some(read),
            Err(Wrong { code, detail }) => {
                let path = self.at(name);
                self.errors.add(&path, code, value, detail);
                None
            }
        }
    }

    /// A field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Read<T>,
    ) -> Option<T> {
        let Some(value) = self.fields.remove(name) else {
            self.missing(name);
            return None;
        };
        self.read(name, &value, read)
    }

    /// A field that may be left out, or be `null`.
    pub(crate) fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Read<T>,
    ) -> Option<T> {
        match self.fields.remove(name) {
            None | Some(Value::Null) => None,
            Some(value) => self.read(name, &value, read),
        }
    }

    /// A field of an update: left out keeps, `null` clears.
    pub(crate) fn patch<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Read<T>,
    ) -> Patch<T> {
        match self.fields.remove(name) {
            None => Patch::Keep,
            Some(Value::Null) => Patch::Clear,
            Some(value) => self
                .read(name, &value, read)
                .map_or(Patch::Keep, Patch::Set),
        }
    }

    /// A nested value of an update: left out keeps, `null` clears.
    pub(crate) fn patch_nested<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, &str, &mut Errors) -> Option<T>,
    ) -> Patch<T> {
        match self.fields.get(name) {
            None => Patch::Keep,
            Some(Value::Null) => {
                self.fields.remove(name);
                Patch::Clear
            }
            Some(_) => self.nested(name, read).map_or(Patch::Keep, Patch::Set),
        }
    }

    /// A nested value with fields of its own, read with the errors at hand; `None` when it is left
    /// out or `null`.
    pub(crate) fn nested<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, &str, &mut Errors) -> Option<T>,
    ) -> Option<T> {
        match self.fields.remove(name) {
            None | Some(Value::Null) => None,
            Some(value) => {
                let path = self.at(name);
                read(value, &path, self.errors)
            }
        }
    }

    /// Whether the field is there and not `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| !value.is_null())
    }

    /// A nested value that must be there.
    pub(crate) fn required_nested<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Value, &str, &mut Errors) -> Option<T>,
    ) -> Option<T> {
        if !self.has(name) {
            self.fields.remove(name);
            self.missing(name);
            return None;
        }
        self.nested(name, read)
    }

    /// Tells of every field that nobody took.
    pub(crate) fn close(self) {
        for (name, value) in &self.fields {
            let path = self.at(name);
            self.errors
                .add(&path, "unknown_field", value, "is not known here");
        }
    }
}

fn wrong(code: &'static str, detail: impl Into<String>) -> Wrong {
    Wrong {
        code,
        detail: detail.into(),
    }
}

/// An id, by its constructor.
pub(crate) fn id<T>(new: fn(&str) -> Result<T, IdError>) -> impl Fn(&Value) -> Read<T> {
    move |value| {
        let text = value
            .as_str()
            .ok_or_else(|| wrong("wrong_type", "must be a text"))?;
        new(text).map_err(|error| wrong("bad_id", error.to_string()))
    }
}

/// A number within limits.
pub(crate) fn number(min: f64, max: f64) -> impl Fn(&Value) -> Read<f64> {
    move |value| {
        let number = value
            .as_f64()
            .ok_or_else(|| wrong("wrong_type", "must be a number"))?;
        if (min..=max).contains(&number) {
            Ok(number)
        } else {
            Err(wrong(
                "out_of_range",
                format!("must be within {min} and {max}"),
            ))
        }
    }
}

/// A whole number within limits; `3.0` is one, as in JSON Schema.
pub(crate) fn integer(min: i64, max: i64) -> impl Fn(&Value) -> Read<i64> {
    move |value| {
        let whole = value.as_i64().or_else(|| {
            let number = value.as_f64()?;
            (number.fract() == 0.0 && number.abs() <= MAX_VERSION as f64).then_some(number as i64)
        });
        let beyond = value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0);
        match whole {
            Some(number) if (min..=max).contains(&number) => Ok(number),
            None if !beyond => Err(wrong("wrong_type", "must be a whole number")),
            _ => Err(wrong(
                "out_of_range",
                format!("must be within {min} and {max}"),
            )),
        }
    }
}

/// An instant in Unix milliseconds.
pub(crate) fn instant(value: &Value) -> Read<UnixMs> {
    integer(0, MAX_VERSION as i64)(value).map(UnixMs::new)
}

/// Any text.
pub(crate) fn text(value: &Value) -> Read<String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| wrong("wrong_type", "must be a text"))
}

/// `true` or `false`.
pub(crate) fn flag(value: &Value) -> Read<bool> {
    value
        .as_bool()
        .ok_or_else(|| wrong("wrong_type", "must be true or false"))
}

/// One of a few words.
pub(crate) fn choice<T: Copy>(words: &[(&str, T)]) -> impl Fn(&Value) -> Read<T> {
    move |value| {
        let text = value
            .as_str()
            .ok_or_else(|| wrong("wrong_type", "must be a text"))?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            wrong(
                "out_of_range",
                format!("must be one of {}", words.join(", ")),
            )
        })
    }
}

/// A list of at most `most` values.
pub(crate) fn list<T>(
    most: usize,
    read: impl Fn(&Value) -> Read<T>,
) -> impl Fn(&Value) -> Read<Vec<T>> {
    move |value| {
        let values = value
            .as_array()
            .ok_or_else(|| wrong("wrong_type", "must be a list"))?;
        if values.len() > most {
            return Err(wrong("out_of_range", format!("has at most {most} entries")));
        }
        let read = values.iter().enumerate().map(|(i, value)| {
            read(value).map_err(|w| wrong(w.code, format!("entry {i}: {}", w.detail)))
        });
        read.collect()
    }
}

/// The entries of a list, not read yet.
pub(crate) fn entries(value: Value, path: &str, errors: &mut Errors) -> Option<Vec<Value>> {
    if let Value::Array(values) = value {
        return Some(values);
    }
    errors.add(path, "wrong_type", &value, "must be a list");
    None
}

/// `{"lat","lng"}`.
pub(crate) fn place(value: Value, path: &str, errors: &mut Errors) -> Option<Place> {
    let mut object = Object::open(value, path, errors)?;
    let place = lat_lng(&mut object);
    object.close();
    place
}

/// The fields `lat` and `lng` of an object.
pub(crate) fn lat_lng(object: &mut Object<'_>) -> Option<Place> {
    let lat = object.required("lat", number(-90.0, 90.0));
    let lng = object.required("lng", number(-180.0, 180.0));
    Place::new(lat?, lng?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::DriverId;

    #[test]
    fn every_wrong_field_is_told_with_its_path() {
        let mut errors = Errors::default();
        let body = json!({"id": "a/b", "pickup": {"lat": 91, "lgn": 1}, "n": 1.5, "odd": [1]});
        let mut object = Object::open(body, "requests[2]", &mut errors).unwrap();
        assert!(object.required("id", id(DriverId::new)).is_none());
        assert!(object.required_nested("pickup", place).is_none());
        assert!(object.optional("n", integer(0, 9)).is_none());
        assert!(object.required("gone", flag).is_none());
        object.close();
        let told: Vec<(String, String)> = errors
            .into_vec()
            .into_iter()
            .map(|e| (e.path, e.code))
            .collect();
        let want = [
            ("requests[2].id", "bad_id"),
            ("requests[2].pickup.lat", "out_of_range"),
            ("requests[2].pickup.lng", "missing"),
            ("requests[2].pickup.lgn", "unknown_field"),
            ("requests[2].n", "wrong_type"),
            ("requests[2].gone", "missing"),
            ("requests[2].odd", "unknown_field"),
        ];
        assert_eq!(
            told,
            want.map(|(path, code)| (path.to_owned(), code.to_owned()))
        );
    }

    #[test]
    fn numbers_are_whole_when_they_must_be() {
        assert_eq!(integer(0, 10)(&json!(3.0)), Ok(3));
        assert_eq!(
            integer(0, 10)(&json!(u64::MAX)).unwrap_err().code,
            "out_of_range"
        );
        assert_eq!(
            integer(0, 10)(&json!(1e300)).unwrap_err().code,
            "out_of_range"
        );
        assert_eq!(integer(0, 10)(&json!("3")).unwrap_err().code, "wrong_type");
    }

    #[test]
    fn long_values_are_not_told_back_whole() {
        let mut errors = Errors::default();
        errors.add("x", "c", &json!("é".repeat(1000)), "d");
        errors.add("x", "c", &json!([1, 2]), "d");
        let told = errors.into_vec();
        assert!(told[0].value.as_str().unwrap().len() < 210);
        assert!(told[1].value.is_null());
    }
}
