//! Batches: each entry stands alone, and a bad one costs the others nothing.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    config::FieldError,
    http::{
        fields::Errors,
        problem::{Code, Problem},
    },
    protocol::Rejected,
};

/// An entry of a batch that was not taken.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RejectedEntry {
    /// Its place in the batch.
    pub index: usize,
    /// Its id; `null` when it has none that can be read.
    pub id: Option<String>,
    /// Why, for programs.
    #[schema(value_type = String)]
    pub code: &'static str,
    /// Why, in words.
    pub detail: String,
}

impl RejectedEntry {
    fn invalid(index: usize, id: Option<String>, errors: &Errors) -> Self {
        Self {
            index,
            id,
            code: "invalid",
            detail: errors.in_words(),
        }
    }

    /// The entry as an error of the whole batch.
    fn error(&self, list: &str) -> FieldError {
        FieldError {
            path: format!("{list}[{}]", self.index),
            code: self.code.into(),
            value: self.id.clone().map_or(Value::Null, Value::String),
            detail: self.detail.clone(),
        }
    }
}

/// The entries of a batch that can be read, each with its place, and the others.
pub(crate) struct Batch<T> {
    pub(crate) entries: Vec<T>,
    /// The place in the batch of each of `entries`.
    pub(crate) places: Vec<usize>,
    pub(crate) rejected: Vec<RejectedEntry>,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            places: Vec::new(),
            rejected: Vec::new(),
        }
    }
}

impl<T> Batch<T> {
    /// Reads every value.
    pub(crate) fn read(
        values: Vec<Value>,
        read: impl Fn(Value, &str, &mut Errors) -> Option<T>,
    ) -> Self {
        let mut batch = Self::default();
        for value in values {
            batch.push(value, &read);
        }
        batch
    }

    /// Reads the next value.
    pub(crate) fn push(
        &mut self,
        value: Value,
        read: impl Fn(Value, &str, &mut Errors) -> Option<T>,
    ) {
        const LONGEST_ID: usize = 128;
        let index = self.len();
        let id = value.get("id").and_then(Value::as_str);
        let id = id.filter(|id| id.len() <= LONGEST_ID).map(str::to_owned);
        let mut errors = Errors::default();
        match read(value, "", &mut errors) {
            Some(entry) if errors.is_empty() => {
                self.entries.push(entry);
                self.places.push(index);
            }
            _ => self
                .rejected
                .push(RejectedEntry::invalid(index, id, &errors)),
        }
    }

    /// Notes an entry that is not even JSON.
    pub(crate) fn push_unreadable(&mut self, detail: String) {
        let index = self.len();
        self.rejected.push(RejectedEntry {
            index,
            id: None,
            code: "invalid",
            detail,
        });
    }

    /// Entries so far.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() + self.rejected.len()
    }
}

/// Tells where in the whole batch the rejected ones of a part stand.
pub(crate) fn placed<Id: ToString>(
    rejected: Vec<Rejected<Id>>,
    places: &[usize],
) -> impl Iterator<Item = RejectedEntry> {
    rejected.into_iter().map(|entry| RejectedEntry {
        index: places.get(entry.index).copied().unwrap_or(entry.index),
        id: Some(entry.id.to_string()),
        code: entry.code.code(),
        detail: entry.code.detail().into(),
    })
}

/// The problem of a batch of which nothing was taken: 503 if the region was full for any, 409 if
/// every id was known with another body, else 422.
pub(crate) fn none_taken(list: &str, rejected: &[RejectedEntry]) -> Problem {
    let code = if rejected.iter().any(|entry| entry.code == "region_full") {
        Code::RegionFull
    } else if rejected.iter().all(|entry| entry.code == "id_conflict") {
        Code::IdConflict
    } else {
        Code::Invalid
    };
    let errors = rejected.iter().map(|entry| entry.error(list)).collect();
    let detail = format!("none of {} {list} was taken", rejected.len());
    Problem::new(code, detail).with_errors(errors)
}
