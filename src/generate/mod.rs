//! A made-up city and its recorded demand, the same for the same seed on any machine.

mod city;
mod demand;

pub use city::{City, HotSpot};
pub use demand::{Generated, GeneratedDriver, GeneratedTrip, Order, generate};
