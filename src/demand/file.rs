//! A model file: what was seen, as JSON.

use std::collections::BTreeMap;

use h3o::CellIndex;
use serde::{Deserialize, Serialize};

use super::{
    counts::{DemandCounts, MODEL_RESOLUTION, Span},
    week::{SLOT, SLOTS, WeekClock, WeekSlot},
};
use crate::domain::{DurationMs, UnixMs};

/// What every model file says it is.
const FORMAT: &str = "kheya-demand";
const VERSION: u32 = 1;

/// A file that is no model file.
#[derive(Debug, thiserror::Error)]
pub enum ModelFileError {
    /// It is not JSON of that shape.
    #[error("not a demand model: {0}")]
    Shape(#[from] serde_json::Error),
    /// It is something else.
    #[error("{field}: {detail}")]
    Field {
        /// Where.
        field: String,
        /// What is wrong there.
        detail: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    format: String,
    version: u32,
    /// Zone by whose clock the week is cut.
    tz: String,
    /// Resolution of the H3 cells.
    resolution: u8,
    slot_ms: i64,
    from_ms: UnixMs,
    to_ms: UnixMs,
    requests: u64,
    /// How long each slot was watched, Monday first.
    watched_ms: Vec<DurationMs>,
    /// By cell: pairs of slot and requests.
    cells: BTreeMap<String, Vec<(u16, u32)>>,
}

impl DemandCounts {
    /// The model file.
    ///
    /// # Errors
    /// [`serde_json::Error`], which would be a defect of ours.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let cells = self.cells.iter().map(|(cell, slots)| {
            let slots = slots.iter();
            let slots = slots.map(|(slot, &count)| (slot.index() as u16, count));
            (cell.to_string(), slots.collect())
        });
        serde_json::to_string(&ModelFile {
            format: FORMAT.into(),
            version: VERSION,
            tz: self.clock.zone().into(),
            resolution: MODEL_RESOLUTION.into(),
            slot_ms: SLOT.get(),
            from_ms: self.span.from,
            to_ms: self.span.to,
            requests: self.requests(),
            watched_ms: self.watched.clone(),
            cells: cells.collect(),
        })
    }

    /// Reads a model file.
    ///
    /// # Errors
    /// [`ModelFileError`] names the place that is wrong.
    pub fn from_json(text: &str) -> Result<Self, ModelFileError> {
        let file: ModelFile = serde_json::from_str(text)?;
        let clock = file.check()?;
        let mut cells = BTreeMap::new();
        for (name, slots) in file.cells {
            let slots_of_cell = slots_of(&name, slots)?;
            cells.insert(cell_of(&name)?, slots_of_cell);
        }
        let counts = Self {
            clock,
            span: Span {
                from: file.from_ms,
                to: file.to_ms,
            },
            watched: file.watched_ms,
            cells,
        };
        if counts.requests() == file.requests {
            Ok(counts)
        } else {
            let detail = format!(
                "{}, but the cells hold {}",
                file.requests,
                counts.requests()
            );
            Err(field("requests", detail))
        }
    }
}

impl ModelFile {
    fn check(&self) -> Result<WeekClock, ModelFileError> {
        if self.format != FORMAT || self.version != VERSION {
            let detail = format!(
                "{:?} version {}: this reads {FORMAT:?} version {VERSION}",
                self.format, self.version
            );
            return Err(field("format", detail));
        }
        if self.resolution != u8::from(MODEL_RESOLUTION) {
            let detail = format!("{}: it is {MODEL_RESOLUTION} here", self.resolution);
            return Err(field("resolution", detail));
        }
        if self.slot_ms != SLOT.get() {
            return Err(field(
                "slot_ms",
                format!("{}: it is {SLOT} here", self.slot_ms),
            ));
        }
        if self.from_ms > self.to_ms {
            return Err(field("to_ms", "lies before from_ms".into()));
        }
        if self.watched_ms.len() != SLOTS {
            let detail = format!("{} slots, a week has {SLOTS}", self.watched_ms.len());
            return Err(field("watched_ms", detail));
        }
        // no clock runs for longer: sums of times stay far from the ends of integers
        let longest = DurationMs::new(1 << 53);
        let absurd = |watched: &DurationMs| *watched < DurationMs::ZERO || *watched > longest;
        if let Some(slot) = self.watched_ms.iter().position(absurd) {
            return Err(field(&format!("watched_ms[{slot}]"), "is no time".into()));
        }
        let unknown = || field("tz", format!("there is no time zone {:?}", self.tz));
        WeekClock::of(&self.tz).ok_or_else(unknown)
    }
}

fn cell_of(name: &str) -> Result<CellIndex, ModelFileError> {
    let cell = name.parse::<CellIndex>().ok();
    let cell = cell.filter(|cell| cell.resolution() == MODEL_RESOLUTION);
    cell.ok_or_else(|| {
        let detail = format!("not an H3 cell of resolution {MODEL_RESOLUTION}");
        field(&format!("cells.{name}"), detail)
    })
}

fn slots_of(name: &str, slots: Vec<(u16, u32)>) -> Result<BTreeMap<WeekSlot, u32>, ModelFileError> {
    let mut read = BTreeMap::new();
    for (number, count) in slots {
        let refused =
            |detail: &str| field(&format!("cells.{name}"), format!("slot {number} {detail}"));
        let slot = WeekSlot::new(number).ok_or_else(|| refused("is not in a week"))?;
        if read.insert(slot, count).is_some() {
            return Err(refused("stands there twice"));
        }
    }
    Ok(read)
}

fn field(field: &str, detail: String) -> ModelFileError {
    ModelFileError::Field {
        field: field.into(),
        detail,
    }
}
