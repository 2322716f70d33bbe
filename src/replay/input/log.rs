//! Kheya's own log as demand: the record of a live node, told by its content.
//!
//! What of a log is a request, a drop-off, a trip time and a driver says [`crate::record`]; the rows
//! then go the way of every other file. Requests and drivers have their names within one region
//! only, so one region is replayed at a time.

use std::path::PathBuf;

use super::{
    cells::Cell,
    columns::Columns,
    demand::Demand,
    error::InputError,
    fleet::FleetDriver,
    options::ReadOptions,
    read::assemble,
    rows::{RowSink, zone_and_range},
};
use crate::{
    config::RegionConfig,
    domain::RegionId,
    record::{
        LogError, Lost, ReadAccount, RecordedDemand, RecordedRegion, is_record,
        read_recorded_demand,
    },
};

/// The fields of a row, by the names of the plainest CSV.
const HEADERS: [&str; 7] = [
    "request_id",
    "requested_at_ms",
    "pickup_lat",
    "pickup_lng",
    "dropoff_lat",
    "dropoff_lng",
    "trip_s",
];

/// A region of a recorded run of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRun {
    files: Vec<PathBuf>,
    region: RecordedRegion,
    read: ReadAccount,
    lost: Lost,
}

impl RecordedRun {
    /// Reads `files` if they are records: segments, or directories of them. None if none of them
    /// is. `region` must be named where the records know several.
    ///
    /// # Errors
    /// Only some of the files are records, one of them is damaged, or the region is not known or
    /// not named.
    pub fn read(
        files: &[PathBuf],
        region: Option<&RegionId>,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Option<Self>, InputError> {
        let Some(record) = files.iter().find(|file| is_record(file)) else {
            return Ok(None);
        };
        if let Some(other) = files.iter().find(|file| !is_record(file)) {
            return Err(InputError::Option {
                option: "FILE",
                value: other.display().to_string(),
                detail: format!(
                    "is not a record of the service, as {} is: give one kind of input",
                    record.display()
                ),
            });
        }
        let RecordedDemand {
            regions,
            read,
            lost,
        } = read_recorded_demand(files, progress).map_err(input_error)?;
        let region = choose(regions, region)?;
        Ok(Some(Self {
            files: files.to_vec(),
            region,
            read,
            lost,
        }))
    }

    /// The demand, cleaned as that of any other file.
    ///
    /// # Errors
    /// An option cannot be followed, or no request is usable.
    pub fn demand(&self, options: &ReadOptions) -> Result<Demand, InputError> {
        let (tz, range) = zone_and_range(options)?;
        let mut sink = RowSink::new(tz, range);
        let Some(file) = self.files.first() else {
            return Err(InputError::NoFile);
        };
        let headers = HEADERS.map(str::to_owned).to_vec();
        let columns = Columns::find(file, headers, options)?;
        let index = super::fields::Field::ALL.map(|field| columns.index(field));
        sink.add_source(file, columns);
        for request in &self.region.requests {
            let number = |number: Option<f64>| number.map_or(Cell::Missing, Cell::Float);
            let row = [
                Cell::Text(request.id.as_str().as_bytes()),
                Cell::UnixMs(request.requested_at.get()),
                Cell::Float(request.pickup.lat()),
                Cell::Float(request.pickup.lng()),
                number(request.dropoff.map(crate::domain::Place::lat)),
                number(request.dropoff.map(crate::domain::Place::lng)),
                number(request.trip_s),
            ];
            let cells = index.map(|place| {
                place
                    .and_then(|place| row.get(place))
                    .copied()
                    .unwrap_or(Cell::Missing)
            });
            sink.push(&cells)?;
        }
        sink.notes = self.notes();
        assemble(&self.files, sink, None, options)
    }

    /// The fleet: each driver where and when it was first seen, until it went for good.
    pub fn fleet(&self) -> Vec<FleetDriver> {
        let driver = |driver: &crate::record::RecordedDriver| FleetDriver {
            driver_id: driver.id.clone(),
            from: driver.from,
            place: driver.place,
            to: driver.to,
        };
        self.region.drivers.iter().map(driver).collect()
    }

    /// The configuration of the last recorded window.
    pub const fn config(&self) -> Option<&RegionConfig> {
        self.region.config.as_ref()
    }

    /// What is odd about the record, in whole sentences.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let region = &self.region;
        if region.from_windows > 0 {
            notes.push(format!(
                "{} requests were taken in elsewhere or earlier and are known from windows only",
                region.from_windows
            ));
        }
        if region.was_tuned {
            notes.push("the region was tuned meanwhile: its last configuration is used".into());
        }
        if self.lost.total() > 0 {
            notes.push(format!(
                "{} entries are missing in the record",
                self.lost.total()
            ));
        }
        let torn: u64 = self.read.torn.iter().map(|tail| tail.bytes).sum();
        if torn > 0 {
            notes.push(format!("{torn} bytes of torn tails were cut off"));
        }
        let missing: u64 = self.read.missing.iter().map(|missing| missing.blocks).sum();
        if missing > 0 {
            notes.push(format!(
                "{missing} blocks in the middle of the record are not there"
            ));
        }
        notes
    }
}

fn choose(
    regions: Vec<RecordedRegion>,
    asked: Option<&RegionId>,
) -> Result<RecordedRegion, InputError> {
    let names: Vec<String> = regions
        .iter()
        .map(|region| format!("{} ({} requests)", region.region, region.requests.len()))
        .collect();
    let refuse = |value: &str, detail: &str| InputError::Option {
        option: "--region",
        value: value.into(),
        detail: match &names[..] {
            [] => format!("{detail}; the record has no requests"),
            names => format!("{detail}; the record knows {}", names.join(", ")),
        },
    };
    match asked {
        Some(asked) => {
            let found = regions.into_iter().find(|region| region.region == *asked);
            found.ok_or_else(|| refuse(asked.as_str(), "no such region"))
        }
        None if regions.len() > 1 => Err(refuse("ID", "name one region")),
        None => regions
            .into_iter()
            .next()
            .ok_or_else(|| InputError::Option {
                option: "FILE",
                value: "DIR".into(),
                detail: "the record is empty".into(),
            }),
    }
}

fn input_error(error: LogError) -> InputError {
    match error {
        LogError::Io { file, source } => InputError::Io { file, source },
        LogError::NoRecord { path } => InputError::NoRows { file: path },
        LogError::Format { file, format } => InputError::Damaged {
            file,
            detail: format!("its format {format:?} is not known to this version"),
        },
        LogError::Damaged {
            file,
            offset,
            detail,
        } => InputError::Damaged {
            file,
            detail: format!("offset {offset}: {detail}"),
        },
    }
}
