//! A place with what the search needs of it, worked out once when the car moves.

use h3o::{CellIndex, LatLng, Resolution};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain::{Place, SpherePoint};

/// Resolution of the H3 index: hexagons of about 0.5 km side.
pub const CELL_RESOLUTION: Resolution = Resolution::Eight;

/// A place, its unit vector and its H3 cell. In JSON it is the place alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    place: Place,
    sphere: SpherePoint,
    cell: CellIndex,
}

impl Position {
    /// Works out the unit vector and the cell of a place; about a microsecond.
    pub fn new(place: Place) -> Self {
        // a checked place is finite, which is all that h3o asks for; the fallback is never reached
        let point = LatLng::new(place.lat(), place.lng()).unwrap_or_default();
        Self {
            place,
            sphere: place.on_sphere(),
            cell: point.to_cell(CELL_RESOLUTION),
        }
    }

    /// A place whose cell is known already, as that of a driver who has not crossed into another.
    pub fn in_cell(place: Place, cell: CellIndex) -> Self {
        Self {
            place,
            sphere: place.on_sphere(),
            cell,
        }
    }

    /// The place.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// The place as a unit vector.
    pub const fn sphere(&self) -> SpherePoint {
        self.sphere
    }

    /// The H3 cell of the place, at [`CELL_RESOLUTION`].
    pub const fn cell(&self) -> CellIndex {
        self.cell
    }

    /// Great-circle distance in kilometres.
    pub fn distance_km(&self, other: &Self) -> f64 {
        self.sphere.distance_km(other.sphere)
    }
}

impl From<Place> for Position {
    fn from(place: Place) -> Self {
        Self::new(place)
    }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.place.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Place::deserialize(d).map(Self::new)
    }
}
