//! Pickup ETAs: how long a car takes to a rider.

mod straight_line;

pub use straight_line::StraightLine;

use crate::supply::Position;

/// A (request, driver) pair whose ETA is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EtaPair {
    /// Index of the request in the list of pickups.
    pub request: u32,
    /// Index of the driver in the list of positions.
    pub driver: u32,
    /// Haversine of the straight distance between the two.
    pub haversine: f64,
}

/// A source of ETAs. It is asked once for a whole window, never pair by pair.
pub trait EtaModel: Sync {
    /// The ETA in seconds of each pair, in order; `None` where there is no route.
    fn etas_s(
        &self,
        pickups: &[Position],
        drivers: &[Position],
        pairs: &[EtaPair],
    ) -> Vec<Option<f64>>;

    /// Whether the ETA rises with the straight distance, so that the nearest drivers by distance are
    /// the nearest by ETA and the others need not be asked for.
    fn rises_with_distance(&self) -> bool {
        false
    }
}
