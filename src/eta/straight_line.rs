//! Straight distance × detour ÷ speed: always at hand, needs no map.

use super::{EtaModel, EtaPair};
use crate::{config::RegionValues, domain::km_of_haversine, supply::Position};

/// The straight-line model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StraightLine {
    seconds_per_km: f64,
}

impl StraightLine {
    /// A model with road kilometres = `detour` × straight kilometres, driven at `speed_kmh`.
    pub fn new(speed_kmh: f64, detour: f64) -> Self {
        Self {
            seconds_per_km: detour / speed_kmh * 3600.0,
        }
    }

    /// The model a region's configuration names.
    pub fn of(config: &RegionValues) -> Self {
        Self::new(config.speed_kmh, config.detour)
    }

    /// Seconds for a straight distance in kilometres.
    pub fn seconds(&self, straight_km: f64) -> f64 {
        straight_km * self.seconds_per_km
    }
}

impl EtaModel for StraightLine {
    fn etas_s(&self, _: &[Position], _: &[Position], pairs: &[EtaPair]) -> Vec<Option<f64>> {
        pairs
            .iter()
            .map(|pair| Some(self.seconds(km_of_haversine(pair.haversine))))
            .collect()
    }

    fn rises_with_distance(&self) -> bool {
        true
    }
}
