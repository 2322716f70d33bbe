//! Reading recorded demand and fleets: files of many shapes in, clean trips and an account of
//! everything left out.
//!
//! A file goes one way: `open` tells its format by content and unpacks it, `csv_rows` or
//! `parquet_rows` give its rows as cells, `columns` says which cell is which field, `rows` reads
//! one row as far as it can be read alone, `date_order` decides what only a whole column can say,
//! `trips` cleans what only all rows can tell, and `read` writes the report.

mod cells;
mod columns;
mod csv_rows;
mod date_order;
mod demand;
mod error;
mod fields;
mod fleet;
mod identity;
mod log;
mod open;
mod options;
mod parquet_cells;
mod parquet_rows;
mod read;
mod report;
mod resolution;
mod rows;
mod strict;
mod surroundings;
mod times;
mod trips;
mod zones;

pub use demand::{Demand, Trip};
pub use error::InputError;
pub use fleet::{FleetDriver, read_drivers};
pub use log::RecordedRun;
pub use options::{DateOrder, DropoffRule, ReadOptions};
pub use read::read_demand;
pub use report::{InputReport, Reason, TripTimeSource};
