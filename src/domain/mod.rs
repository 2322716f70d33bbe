//! The words of the domain as types that cannot be wrong: ids, instants, durations, costs, places,
//! and the seeded draw.
//!
//! Everything that enters the product is checked once, here; the rest of the code never sees a raw
//! id, a bare number of milliseconds or an unchecked coordinate.

mod draw;
mod ids;
mod place;
mod units;
mod versions;

pub use draw::Draw;
pub use ids::{
    DriverId, IdError, MAX_ID_BYTES, NodeId, RegionId, RequestId, RiderId, VehicleClass, WindowId,
};
pub use place::{
    EARTH_RADIUS_KM, Place, PlaceError, SpherePoint, haversine_of_km, km_of_haversine,
};
pub use units::{CostMs, DurationMs, UnixMs, round_half_away};
pub use versions::{
    ConfigVersion, Epoch, EventId, Fence, Finite, Generation, MAX_VERSION, Nonce, NotFinite,
    StoreTime, Take, VersionError, WindowSeq,
};
