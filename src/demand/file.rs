//! A model file: what was seen, as JSON.
//!
//! A file is checked while it is read, so a broken one is refused where it breaks, before it takes
//! more memory than a good one: at most [`MAX_CELLS`] and [`MAX_COUNTS`].

use std::{collections::BTreeMap, fmt};

use h3o::CellIndex;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

use super::{
    counts::{DemandCounts, MODEL_RESOLUTION, Span},
    week::{SLOT, SLOTS, WeekClock, WeekSlot, on_calendar},
};
use crate::domain::{DurationMs, UnixMs};

/// What every model file says it is.
const FORMAT: &str = "kheya-demand";
const VERSION: u32 = 1;

/// Most cells: 26,000 km², twice the largest built-up area there is. Every window goes over them.
const MAX_CELLS: usize = 250_000;

/// Most counts of a cell and slot, some 16 bytes each in [`DemandCounts`] and twice that in the model
/// made of them: 25,000 cells that saw a request in every quarter of the week.
const MAX_COUNTS: usize = 1 << 24;

/// Longest time a slot can be watched: no clock runs for longer, and sums stay far from the ends of
/// integers.
const LONGEST: DurationMs = DurationMs::new(1 << 53);

/// A file that is no model file.
#[derive(Debug, thiserror::Error)]
pub enum ModelFileError {
    /// It is not JSON of that shape.
    #[error("not a demand model: {}", clipped(&.0.to_string()))]
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
    #[serde(deserialize_with = "read_watched")]
    watched_ms: Vec<DurationMs>,
    cells: Cells,
}

/// By cell: pairs of slot and requests.
struct Cells(BTreeMap<CellIndex, BTreeMap<WeekSlot, u32>>);

/// Pairs of slot and requests, each slot once.
struct Slots(BTreeMap<WeekSlot, u32>);

impl DemandCounts {
    /// The model file.
    ///
    /// # Errors
    /// [`serde_json::Error`], which would be a defect of ours.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
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
            cells: Cells(self.cells.clone()),
        })
    }

    /// Reads a model file.
    ///
    /// # Errors
    /// [`ModelFileError`] names the place that is wrong.
    pub fn from_json(text: &str) -> Result<Self, ModelFileError> {
        let file: ModelFile = serde_json::from_str(text)?;
        let clock = file.check()?;
        let Cells(cells) = file.cells;
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
                clipped(&self.format),
                self.version
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
        for (name, at) in [("from_ms", self.from_ms), ("to_ms", self.to_ms)] {
            if !on_calendar(at) {
                return Err(field(name, format!("{at} is no time")));
            }
        }
        if self.from_ms > self.to_ms {
            return Err(field("to_ms", "lies before from_ms".into()));
        }
        let unknown = || {
            let detail = format!("there is no time zone {:?}", clipped(&self.tz));
            field("tz", detail)
        };
        WeekClock::of(&self.tz).ok_or_else(unknown)
    }
}

impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cells = self.0.iter().map(|(cell, slots)| {
            let pairs = slots
                .iter()
                .map(|(slot, &count)| (slot.index() as u16, count));
            (cell.to_string(), pairs.collect::<Vec<_>>())
        });
        serializer.collect_map(cells)
    }
}

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CellsVisitor)
    }
}

struct CellsVisitor;

impl<'de> Visitor<'de> for CellsVisitor {
    type Value = Cells;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cells: an object of H3 cells")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Cells, M::Error> {
        let mut cells = BTreeMap::new();
        let mut counts = 0;
        while let Some(name) = map.next_key::<String>()? {
            let refused = |detail: &dyn fmt::Display| {
                de::Error::custom(format_args!("cells.{}: {detail}", clipped(&name)))
            };
            let cell = name.parse::<CellIndex>().ok();
            let cell = cell.filter(|cell| cell.resolution() == MODEL_RESOLUTION);
            let cell = cell.ok_or_else(|| {
                refused(&format_args!(
                    "not an H3 cell of resolution {MODEL_RESOLUTION}"
                ))
            })?;
            let Slots(slots) = map.next_value().map_err(|error| refused(&error))?;
            counts += slots.len();
            if cells.insert(cell, slots).is_some() {
                return Err(refused(&"stands there twice"));
            }
            if cells.len() > MAX_CELLS || counts > MAX_COUNTS {
                let detail = format!("over {MAX_CELLS} cells or {MAX_COUNTS} counts");
                return Err(refused(&detail));
            }
        }
        Ok(Cells(cells))
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(SlotsVisitor)
    }
}

struct SlotsVisitor;

impl<'de> Visitor<'de> for SlotsVisitor {
    type Value = Slots;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pairs of slot and requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pairs: A) -> Result<Slots, A::Error> {
        let mut slots = BTreeMap::new();
        while let Some((number, count)) = pairs.next_element::<(u16, u32)>()? {
            let refused = |detail: &str| de::Error::custom(format_args!("slot {number} {detail}"));
            let slot = WeekSlot::new(number).ok_or_else(|| refused("is not in a week"))?;
            if slots.insert(slot, count).is_some() {
                return Err(refused("stands there twice"));
            }
        }
        Ok(Slots(slots))
    }
}

fn read_watched<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DurationMs>, D::Error> {
    deserializer.deserialize_seq(WatchedVisitor)
}

struct WatchedVisitor;

impl<'de> Visitor<'de> for WatchedVisitor {
    type Value = Vec<DurationMs>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "watched_ms: {SLOTS} times")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut times: A) -> Result<Self::Value, A::Error> {
        let mut watched = Vec::with_capacity(SLOTS);
        while let Some(time) = times.next_element::<DurationMs>()? {
            let slot = watched.len();
            if slot == SLOTS {
                return Err(de::Error::invalid_length(slot + 1, &self));
            }
            if !(DurationMs::ZERO..=LONGEST).contains(&time) {
                return Err(de::Error::custom(format_args!(
                    "watched_ms[{slot}]: is no time"
                )));
            }
            watched.push(time);
        }
        if watched.len() < SLOTS {
            return Err(de::Error::invalid_length(watched.len(), &self));
        }
        Ok(watched)
    }
}

/// Start and end of a text that may be long, since it is not ours.
fn clipped(text: &str) -> String {
    const START: usize = 160;
    const END: usize = 60;
    let start: String = text.chars().take(START).collect();
    if text.len() <= START + END {
        return text.into();
    }
    let end = text.char_indices().rev().nth(END - 1);
    let end = end.map_or("", |(at, _)| {
        text.get(at.max(start.len())..).unwrap_or_default()
    });
    format!("{start}…{end}")
}

fn field(field: &str, detail: String) -> ModelFileError {
    ModelFileError::Field {
        field: field.into(),
        detail,
    }
}

#[cfg(test)]
mod tests;
