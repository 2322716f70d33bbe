//! Kheya: a batched assignment optimizer for ride-hailing dispatch.

pub mod candidates;
pub mod cli;
pub mod config;
pub mod decision;
pub mod demand;
pub mod domain;
pub mod eta;
pub mod generate;
pub mod http;
pub mod leadership;
pub mod protocol;
pub mod record;
pub mod replay;
pub mod store;
pub mod supply;
pub mod telemetry;
pub mod window;
