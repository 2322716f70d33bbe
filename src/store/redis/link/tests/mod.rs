//! The link against real servers that are stopped, killed, demoted, cut off and moved.

mod cluster;
mod kit;
mod sentinel;
mod server;
