//! The fleet of a replay from a file: who drives, from when, from where.

use std::{collections::HashMap, path::Path};

use super::{error::InputError, open::Progress, strict::StrictRows};
use crate::domain::{DriverId, Place, UnixMs};

/// A driver of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetDriver {
    /// The driver.
    pub driver_id: DriverId,
    /// When the driver is first available.
    pub from: UnixMs,
    /// Where, then.
    pub place: Place,
    /// After this the driver takes no new request.
    pub to: Option<UnixMs>,
}

/// Reads a CSV `driver_id,from_ms,lat,lng[,to_ms]` (plain, gzip or zstd), sorted by id. Such a
/// file is made for Kheya, so every row must be right.
///
/// # Errors
/// The file, row and column that are wrong: a column is missing, an id is malformed or came
/// before, a number or a place is none, `to_ms` is before `from_ms`, or there is no row.
pub fn read_drivers(file: &Path) -> Result<Vec<FleetDriver>, InputError> {
    let progress = Progress::new(0, &|_, _| {});
    let mut rows = StrictRows::open(file, &progress)?;
    let id = rows.column(&["driver_id"])?;
    let from = rows.column(&["from_ms"])?;
    let lat = rows.column(&["lat"])?;
    let lng = rows.column(&["lng", "lon"])?;
    let to = rows.optional(&["to_ms"])?;
    let mut drivers = Vec::new();
    let mut first_rows = HashMap::new();
    while rows.next()? {
        let driver_id =
            DriverId::new(rows.text(id)?).map_err(|error| rows.refuse(id, &error.to_string()))?;
        if let Some(row) = first_rows.insert(driver_id.clone(), rows.line()) {
            return Err(rows.refuse(id, &format!("driver {driver_id} came before, in row {row}")));
        }
        let driver = FleetDriver {
            driver_id,
            from: UnixMs::new(rows.whole(from)?),
            place: rows.place(lat, lng)?,
            to: match to {
                Some(to) if !rows.text(to)?.is_empty() => Some(UnixMs::new(rows.whole(to)?)),
                _ => None,
            },
        };
        if let (Some(column), Some(end)) = (to, driver.to)
            && end < driver.from
        {
            return Err(rows.refuse(column, "before from_ms"));
        }
        drivers.push(driver);
    }
    if drivers.is_empty() {
        return Err(InputError::NoRows { file: file.into() });
    }
    drivers.sort_by(|a, b| a.driver_id.cmp(&b.driver_id));
    Ok(drivers)
}
