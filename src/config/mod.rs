//! Configuration: raw values in, a checked configuration or every error at once out.

mod region;

pub use region::{Clamped, FieldError, Patched, RegionConfig, RegionValues};
