//! Configuration: raw values in, a checked configuration or every error at once out.
//!
//! [`RegionConfig`] is what is tuned while a region lives; [`ServeConfig`] is what a node is
//! started with.

mod layers;
mod node;
mod region;
mod region_rules;
mod store_options;

pub use layers::{ConfigError, ConfigErrors, Flags, Source};
pub use node::{LeadershipTimes, LogFormat, Recording, ServeConfig, StoreAddress, TlsFiles};
pub use region::{Clamped, FieldError, Patched, RegionConfig, RegionValues};
pub use region_rules::DocumentError;
