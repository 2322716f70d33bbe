//! Which column holds which field: guessed from well-known headers, or as the caller says.

use std::path::Path;

use super::{
    error::InputError,
    fields::{FIELDS, Field, normalised},
    options::{DropoffRule, ReadOptions},
};

/// The columns of one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Columns {
    /// For each field, the number of its column.
    index: [Option<usize>; FIELDS],
    /// Fields that the caller mapped.
    given: [bool; FIELDS],
    /// The headers, trimmed.
    headers: Vec<String>,
    /// Zones that are there but not used, because coordinates are.
    unused_zones: bool,
}

impl Columns {
    /// Finds the columns of the fields among `headers`.
    ///
    /// # Errors
    /// `--map` names a field or column that is not there, two columns fit one field, or a needed
    /// field has none.
    pub(crate) fn find(
        file: &Path,
        headers: Vec<String>,
        options: &ReadOptions,
    ) -> Result<Self, InputError> {
        let mut columns = Self {
            index: [None; FIELDS],
            given: [false; FIELDS],
            headers,
            unused_zones: false,
        };
        columns.follow(file, &options.map)?;
        columns.guess(file)?;
        columns.settle_times();
        columns.settle_places();
        columns.check(file, options)?;
        Ok(columns)
    }

    /// Whether any header is a well-known one.
    pub(crate) fn any_known(headers: &[String]) -> bool {
        headers.iter().any(|header| {
            let header = normalised(header);
            Field::ALL.iter().any(|f| f.is_known_as(&header))
        })
    }

    /// The number of a field's column.
    pub(crate) fn index(&self, field: Field) -> Option<usize> {
        self.index[field as usize]
    }

    /// The header of a field's column.
    pub(crate) fn header(&self, field: Field) -> Option<&str> {
        self.index(field).map(|i| self.headers[i].as_str())
    }

    /// Whether the caller named this field's column.
    pub(crate) fn is_given(&self, field: Field) -> bool {
        self.given[field as usize]
    }

    /// How many columns the file has.
    pub(crate) fn width(&self) -> usize {
        self.headers.len()
    }

    /// Whether the file also has zones, which stay unused beside its coordinates.
    pub(crate) fn has_unused_zones(&self) -> bool {
        self.unused_zones
    }

    fn follow(&mut self, file: &Path, map: &[(String, String)]) -> Result<(), InputError> {
        for (name, column) in map {
            let refuse = |detail: String| InputError::Option {
                option: "--map",
                value: format!("{name}={column}"),
                detail,
            };
            let field = Field::named(name).ok_or_else(|| {
                let names: Vec<_> = Field::ALL.iter().map(|f| f.name()).collect();
                refuse(format!(
                    "there is no field {name:?}; the fields are {}",
                    names.join(", ")
                ))
            })?;
            if self.is_given(field) {
                return Err(refuse(format!("{} is mapped twice", field.name())));
            }
            let index = self.column_named(column).ok_or_else(|| {
                let found = self.list();
                refuse(format!(
                    "{} has no column {column:?}; its columns are {found}",
                    file.display()
                ))
            })?;
            self.index[field as usize] = Some(index);
            self.given[field as usize] = true;
        }
        Ok(())
    }

    /// The column of exactly this header, else the one column that equals it but for case and
    /// punctuation.
    fn column_named(&self, column: &str) -> Option<usize> {
        let exact = self.headers.iter().position(|h| h == column.trim());
        exact.or_else(|| {
            let wanted = normalised(column);
            let mut alike = (0..self.width()).filter(|&i| normalised(&self.headers[i]) == wanted);
            let first = alike.next()?;
            alike.next().is_none().then_some(first)
        })
    }

    fn guess(&mut self, file: &Path) -> Result<(), InputError> {
        let names: Vec<String> = self.headers.iter().map(|h| normalised(h)).collect();
        let taken = self.index;
        for field in Field::ALL {
            if self.is_given(field) {
                continue;
            }
            let fits = |i: &usize| field.is_known_as(&names[*i]) && !taken.contains(&Some(*i));
            let mut fitting = (0..names.len()).filter(fits);
            let Some(first) = fitting.next() else {
                continue;
            };
            if let Some(second) = fitting.next() {
                return Err(InputError::TwoColumns {
                    file: file.into(),
                    field: field.name(),
                    first: self.headers[first].clone(),
                    second: self.headers[second].clone(),
                });
            }
            self.index[field as usize] = Some(first);
        }
        Ok(())
    }

    /// Without a request time of its own, the time of the pickup is the request's.
    fn settle_times(&mut self) {
        let (requested, pickup) = (Field::RequestedAt as usize, Field::PickupAt as usize);
        if self.index[requested].is_none() {
            self.index[requested] = self.index[pickup].take();
            self.given[requested] = std::mem::take(&mut self.given[pickup]);
        }
    }

    /// Coordinates are finer than zones: where a file has both, they are used, unless the caller
    /// named the zone's column.
    fn settle_places(&mut self) {
        for (zone, lat, lng) in [
            (Field::PickupZone, Field::PickupLat, Field::PickupLng),
            (Field::DropoffZone, Field::DropoffLat, Field::DropoffLng),
        ] {
            let both = self.index(lat).is_some() && self.index(lng).is_some();
            let asked_zone = self.is_given(zone) && !self.is_given(lat) && !self.is_given(lng);
            if both && !asked_zone {
                self.unused_zones |= self.index[zone as usize].take().is_some();
            } else if self.index(zone).is_some() {
                self.index[lat as usize] = None;
                self.index[lng as usize] = None;
            }
        }
    }

    fn check(&self, file: &Path, options: &ReadOptions) -> Result<(), InputError> {
        let mut missing = Vec::new();
        if self.index(Field::RequestedAt).is_none() {
            missing.push(Field::RequestedAt.name());
        }
        let mut ends = vec![(Field::PickupZone, Field::PickupLat, Field::PickupLng)];
        let dropoff = (Field::DropoffZone, Field::DropoffLat, Field::DropoffLng);
        let half = self.index(dropoff.1).is_some() != self.index(dropoff.2).is_some();
        if options.dropoff == DropoffRule::Require || half {
            ends.push(dropoff);
        }
        for (zone, lat, lng) in ends {
            if self.index(zone).is_none() {
                let absent = [lat, lng].into_iter().filter(|&f| self.index(f).is_none());
                missing.extend(absent.map(Field::name));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let only_dropoff = missing.iter().all(|name| name.starts_with("dropoff")) && !half;
        let hint = if only_dropoff {
            "; draw drop-offs with --dropoff sample, or name the columns with --map field=column"
        } else {
            "; name it with --map field=column"
        };
        Err(InputError::MissingColumns {
            file: file.into(),
            missing: missing.join(", "),
            found: self.list(),
            hint: hint.to_owned(),
        })
    }

    fn list(&self) -> String {
        list_headers(&self.headers)
    }
}

/// Headers for a message: at most forty, each cut after forty characters.
pub(crate) fn list_headers(headers: &[String]) -> String {
    const MOST: usize = 40;
    let short = |header: &String| header.chars().take(MOST).collect::<String>();
    let mut shown: Vec<_> = headers.iter().take(MOST).map(short).collect();
    if headers.len() > MOST {
        shown.push("…".into());
    }
    shown.join(", ")
}
