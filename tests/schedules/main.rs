//! Several nodes and a real Redis under seeded load and seeded faults; afterwards every operation is
//! checked against the region's own outbox.
//!
//! `KHEYA_SCHEDULES=n` runs n schedules; `SCHEDULE=seed` runs one.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of a test fail it by panicking"
)]

mod calls;
#[path = "../chance/mod.rs"]
mod chance;
mod check;
mod cluster;
mod even;
mod faults;
mod handover;
mod late;
mod load;
mod mutants;
mod outage;
mod post_mortem;
mod schedule;
mod stage;
mod watching;
