//! What stands in a path and after its `?`, checked like a body: every wrong part is told.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    convert::Infallible,
};

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::request::Parts,
};
use serde_json::Value;

use super::{
    fields::{Errors, Read, Wrong, integer},
    problem::{Code, Problem},
};
use crate::domain::{DriverId, IdError, RegionId, RequestId, WindowId, WindowSeq};

/// A part of a path that is an id.
pub(crate) trait PathPart: Sized {
    /// Its name in the route.
    const NAME: &'static str;

    fn read(text: &str) -> Result<Self, String>;
}

macro_rules! path_ids {
    ($($id:ty = $name:literal;)*) => {
        $(impl PathPart for $id {
            const NAME: &'static str = $name;

            fn read(text: &str) -> Result<Self, String> {
                Self::new(text).map_err(|error: IdError| error.to_string())
            }
        })*
    };
}

path_ids! {
    RegionId = "region";
    DriverId = "driver";
    RequestId = "request";
    WindowId = "window_id";
}

impl PathPart for WindowSeq {
    const NAME: &'static str = "window_seq";

    fn read(text: &str) -> Result<Self, String> {
        let number = text
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse::<u64>().ok());
        let number = number
            .flatten()
            .and_then(|number| Self::try_from(number).ok());
        number.ok_or_else(|| "must be a whole number below 2^53".into())
    }
}

/// An id of the path.
pub(crate) struct PathId<T>(pub(crate) T);

impl<S: Send + Sync, T: PathPart> FromRequestParts<S> for PathId<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|error| Problem::new(Code::Malformed, error.body_text()))?;
        let text = params.iter().find(|(name, _)| *name == T::NAME);
        let text = text.map(|(_, text)| text).unwrap_or_default();
        T::read(text)
            .map(Self)
            .map_err(|detail| Problem::invalid_field(T::NAME, "bad_id", text.into(), detail))
    }
}

/// The parameters after the `?`, taken one by one; what is left at the end is unknown.
pub(crate) struct Params {
    given: BTreeMap<String, String>,
    errors: Errors,
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

/// For a route without parameters: any there are refused.
pub(crate) struct NoParams;

impl<S: Send + Sync> FromRequestParts<S> for NoParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let params = Params::parse(parts.uri.query().unwrap_or_default());
        params.close().map(|()| Self)
    }
}

impl Params {
    fn parse(query: &str) -> Self {
        let mut given = BTreeMap::new();
        let mut errors = Errors::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let (name, value) = (name.into_owned(), value.into_owned());
            match given.entry(name) {
                Entry::Occupied(entry) => {
                    errors.add(entry.key(), "duplicate", &value.into(), "is given twice");
                }
                Entry::Vacant(entry) => drop(entry.insert(value)),
            }
        }
        Self { given, errors }
    }

    /// A parameter as text; an empty one counts as left out.
    pub(crate) fn text<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.given.remove(name).filter(|text| !text.is_empty())?;
        read(&text)
            .map_err(|detail| self.errors.add(name, "bad_value", &text.into(), detail))
            .ok()
    }

    /// A parameter that holds a JSON number or flag, read as a body's field would be.
    pub(crate) fn value<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Read<T>,
    ) -> Option<T> {
        let text = self.given.remove(name).filter(|text| !text.is_empty())?;
        let value = match serde_json::from_str(&text) {
            Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
            _ => Value::String(text),
        };
        read(&value)
            .map_err(|Wrong { code, detail }| self.errors.add(name, code, &value, detail))
            .ok()
    }

    /// A parameter of [`Params::value`] that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Read<T>,
    ) -> Option<T> {
        if self.given.get(name).is_none_or(String::is_empty) {
            self.errors.add(name, "missing", &Value::Null, "is needed");
        }
        self.value(name, read)
    }

    /// `limit`: 1 to 1,000, by default 100.
    pub(crate) fn limit(&mut self) -> usize {
        self.value("limit", integer(1, 1_000))
            .map_or(100, |limit| limit as usize)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// 422 with everything that is wrong, parameters that nobody took among it.
    pub(crate) fn close(mut self) -> Result<(), Problem> {
        for (name, value) in &self.given {
            let value = Value::from(value.as_str());
            self.errors
                .add(name, "unknown_parameter", &value, "is not known here");
        }
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(Problem::invalid(self.errors.into_vec()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::fields::{flag, number};

    #[test]
    fn every_wrong_parameter_is_told() {
        let mut params = Params::parse("lat=91&lat=2&limit=0&x=1&dry=true&state=&n=1e3");
        assert!(params.required("lat", number(-90.0, 90.0)).is_none());
        assert!(params.required("lng", number(-180.0, 180.0)).is_none());
        assert_eq!(params.limit(), 100);
        assert_eq!(params.value("dry", flag), Some(true));
        assert_eq!(params.value("n", integer(0, 2000)), Some(1000));
        assert_eq!(params.text("state", |text| Ok(text.to_owned())), None);
        let problem: Value = serde_json::from_str(&params.close().unwrap_err().to_json()).unwrap();
        let told: Vec<&str> = problem["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["path"].as_str().unwrap())
            .collect();
        assert_eq!(told, ["lat", "lat", "lng", "limit", "x"]);
    }

    #[test]
    fn a_window_number_is_plain_digits() {
        assert!(WindowSeq::read("12").is_ok());
        for bad in ["", "+1", "-1", "1.0", "9007199254740992", "a"] {
            assert!(WindowSeq::read(bad).is_err(), "{bad}");
        }
    }
}
