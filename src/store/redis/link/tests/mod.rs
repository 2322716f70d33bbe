//! Addresses, and the link against real servers that are stopped, killed, demoted, cut off and
//! moved.

mod address;
mod cluster;
mod kit;
mod sentinel;
mod server;
