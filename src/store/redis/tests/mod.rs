//! The Redis store against a real server: the suite that every store must pass, and each script
//! against the pure step that it stands for.

mod bounds;
mod conformance;
mod differential;
mod server;
