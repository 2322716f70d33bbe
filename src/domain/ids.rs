//! Identifiers: opaque printable ASCII, ordered by their bytes.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Empty, or longer than the 128 bytes that every id may have.
    #[error("an id has 1 to 128 characters, this one has {0}")]
    Length(usize),
    /// A byte outside printable ASCII, or a slash.
    #[error("an id is printable ASCII without '/', found {0:?}")]
    Character(char),
    /// A region id outside `^[a-z0-9][a-z0-9_-]{0,63}$`.
    #[error("a region id matches ^[a-z0-9][a-z0-9_-]{{0,63}}$")]
    Region,
}

/// Longest id, in bytes.
pub const MAX_ID_BYTES: usize = 128;

fn check(text: &str) -> Result<(), IdError> {
    if let Some(bad) = text.chars().find(|c| !matches!(c, ' '..='~') || *c == '/') {
        return Err(IdError::Character(bad));
    }
    if text.is_empty() || text.len() > MAX_ID_BYTES {
        return Err(IdError::Length(text.len()));
    }
    Ok(())
}

fn check_region(text: &str) -> Result<(), IdError> {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let well_formed = bytes.len() <= 64
        && bytes.first().is_some_and(|&b| lower(b))
        && bytes.iter().all(|&b| lower(b) || b == b'_' || b == b'-');
    if well_formed {
        Ok(())
    } else {
        Err(IdError::Region)
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and keeps `text`.
            ///
            /// # Errors
            /// [`IdError`] says what is wrong with it.
            pub fn new(text: &str) -> Result<Self, IdError> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// The id as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                Self::new(&text).map_err(de::Error::custom)
            }
        }
    };
}

id!(
    /// A region: the unit of windows, leadership, keys and failure.
    RegionId,
    check_region
);
id!(
    /// A driver (a car).
    DriverId,
    check
);
id!(
    /// A request: a rider waiting for a driver.
    RequestId,
    check
);
id!(
    /// The rider behind a request, when the dispatch tier names one.
    RiderId,
    check
);
id!(
    /// A class of vehicle that a driver offers and a request may ask for.
    VehicleClass,
    check
);
id!(
    /// The dispatch tier's own name of a window that it asked for.
    WindowId,
    check
);
id!(
    /// A service node.
    NodeId,
    check
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_printable_ascii_without_slash_of_at_most_128_bytes() {
        assert!(DriverId::new("d 1~!").is_ok());
        assert!(DriverId::new(&"x".repeat(128)).is_ok());
        assert_eq!(DriverId::new(&"x".repeat(129)), Err(IdError::Length(129)));
        assert_eq!(DriverId::new(""), Err(IdError::Length(0)));
        assert_eq!(DriverId::new("a/b"), Err(IdError::Character('/')));
        assert_eq!(DriverId::new("খ"), Err(IdError::Character('খ')));
        assert_eq!(DriverId::new("a\n"), Err(IdError::Character('\n')));
    }

    #[test]
    fn region_ids_are_lower_case_slugs() {
        assert!(RegionId::new("dhaka-2_x").is_ok());
        assert!(RegionId::new(&"a".repeat(64)).is_ok());
        for bad in ["", "-a", "_a", "Dhaka", "a b", &"a".repeat(65)] {
            assert_eq!(RegionId::new(bad), Err(IdError::Region), "{bad}");
        }
    }
}
