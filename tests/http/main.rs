//! The HTTP side over its whole width: in process, and over real sockets.

mod access;
mod claims;
mod contract;
mod dashboard;
mod drivers;
mod events;
mod regions;
mod requests;
mod serving;
mod solve;
mod support;
mod windows;
