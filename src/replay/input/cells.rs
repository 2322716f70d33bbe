//! One field of one row, from whichever format, and its reading as a number, a zone or an id.

use std::borrow::Cow;

/// A field's value as its format gives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    /// Null, or no such column.
    Missing,
    /// Text that is still to be read; it may be blank or not UTF-8.
    Text(&'a [u8]),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A wall-clock time, in milliseconds since 1970-01-01T00:00 on that clock.
    WallMs(i64),
    /// An instant, in Unix milliseconds.
    UnixMs(i64),
}

/// Why a field is not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoNumber {
    /// Nothing is written, or a word for nothing.
    Missing,
    /// Something else.
    Bad,
}

impl Cell<'_> {
    /// A finite number.
    pub(crate) fn number(self) -> Result<f64, NoNumber> {
        let number = match self {
            Self::Missing | Self::WallMs(_) | Self::UnixMs(_) => return Err(NoNumber::Missing),
            Self::Int(whole) => whole as f64,
            Self::Float(number) if number.is_nan() => return Err(NoNumber::Missing),
            Self::Float(number) => number,
            Self::Text(text) => parse_number(text)?,
        };
        if number.is_finite() {
            Ok(number)
        } else {
            Err(NoNumber::Bad)
        }
    }

    /// The id of a zone: a whole number, which some files write as `161.0`.
    pub(crate) fn zone(self) -> Result<u32, NoNumber> {
        let number = self.number()?;
        let whole = number.round();
        if (number - whole).abs() < 1e-9 && (0.0..=f64::from(u32::MAX)).contains(&whole) {
            Ok(whole as u32)
        } else {
            Err(NoNumber::Bad)
        }
    }

    /// The text of an id.
    pub(crate) fn id_text(&self) -> Result<Cow<'_, str>, NoNumber> {
        match *self {
            Self::Missing => Err(NoNumber::Missing),
            Self::Text(text) => {
                let text = text.trim_ascii();
                if is_nothing(text) {
                    return Err(NoNumber::Missing);
                }
                let text = std::str::from_utf8(text).map_err(|_| NoNumber::Bad)?;
                Ok(text.into())
            }
            Self::Int(id) | Self::WallMs(id) | Self::UnixMs(id) => Ok(id.to_string().into()),
            Self::Float(id) => Ok(id.to_string().into()),
        }
    }
}

fn parse_number(text: &[u8]) -> Result<f64, NoNumber> {
    let text = text.trim_ascii();
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.parse::<f64>().ok());
    match parsed {
        Some(number) if !number.is_nan() => Ok(number),
        _ if is_nothing(text) => Err(NoNumber::Missing),
        _ => Err(NoNumber::Bad),
    }
}

/// Blank, or one of the words that exports write for a null.
fn is_nothing(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 7] = [b"null", b"nan", b"na", b"n/a", b"none", b"\\n", b"nat"];
    text.is_empty() || WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_finite_and_words_for_nothing_are_missing() {
        assert_eq!(Cell::Text(b" -7.4e1 ").number(), Ok(-74.0));
        assert_eq!(Cell::Text(b"NULL").number(), Err(NoNumber::Missing));
        assert_eq!(Cell::Text(b"NaN").number(), Err(NoNumber::Missing));
        assert_eq!(Cell::Float(f64::NAN).number(), Err(NoNumber::Missing));
        assert_eq!(Cell::Text(b"inf").number(), Err(NoNumber::Bad));
        assert_eq!(Cell::Text(b"40,7").number(), Err(NoNumber::Bad));
        assert_eq!(Cell::Text(b"\xff").number(), Err(NoNumber::Bad));
    }

    #[test]
    fn zones_are_whole_numbers_however_they_are_written() {
        assert_eq!(Cell::Text(b"161").zone(), Ok(161));
        assert_eq!(Cell::Text(b"161.0").zone(), Ok(161));
        assert_eq!(Cell::Float(161.0).zone(), Ok(161));
        assert_eq!(Cell::Float(161.5).zone(), Err(NoNumber::Bad));
        assert_eq!(Cell::Int(-1).zone(), Err(NoNumber::Bad));
    }
}
