//! Taking a reply of the server apart.

use redis::Value;

use super::wire::WireError;
use crate::domain::StoreTime;

const UNEXPECTED: WireError = WireError::Missing("the expected kind of reply");

/// The bytes of a string; nothing for nil.
pub(super) fn bytes(value: &Value) -> Result<Option<&[u8]>, WireError> {
    match value {
        Value::BulkString(bytes) => Ok(Some(bytes)),
        Value::SimpleString(text) => Ok(Some(text.as_bytes())),
        Value::Nil => Ok(None),
        _ => Err(UNEXPECTED),
    }
}

/// A string that must be text.
pub(super) fn text(value: &Value) -> Result<&str, WireError> {
    let bytes = bytes(value)?.ok_or(UNEXPECTED)?;
    std::str::from_utf8(bytes).map_err(|_| UNEXPECTED)
}

/// A list; nil is an empty one.
pub(super) fn list(value: &Value) -> Result<&[Value], WireError> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Nil => Ok(&[]),
        _ => Err(UNEXPECTED),
    }
}

/// A count, or a number that is written as text.
pub(super) fn count(value: &Value) -> Result<u64, WireError> {
    match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| UNEXPECTED),
        other => text(other)?.parse().map_err(|_| UNEXPECTED),
    }
}

/// Names and values by turns, as a hash or a scored set is told.
pub(super) fn pairs(value: &Value) -> Result<Vec<(&Value, &Value)>, WireError> {
    match value {
        Value::Map(pairs) => Ok(pairs.iter().map(|(name, value)| (name, value)).collect()),
        other => {
            let (pairs, rest) = list(other)?.as_chunks::<2>();
            if rest.is_empty() {
                Ok(pairs.iter().map(|[name, value]| (name, value)).collect())
            } else {
                Err(UNEXPECTED)
            }
        }
    }
}

/// The items of a reply whose number is known.
pub(super) fn items<const N: usize>(values: &[Value]) -> Result<&[Value; N], WireError> {
    values.try_into().map_err(|_| UNEXPECTED)
}

/// What `TIME` tells.
pub(super) fn clock(time: &Value) -> Result<StoreTime, WireError> {
    let [seconds, micros] = items::<2>(list(time)?)?;
    Ok(StoreTime::from_micros(
        count(seconds)? * 1_000_000 + count(micros)?,
    ))
}
