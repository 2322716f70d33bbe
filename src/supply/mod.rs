//! Supply: where the drivers are. A position is disposable; the next ping replaces it.

mod nearby;
mod position;

pub use nearby::{Nearby, Neighbour};
pub use position::{CELL_RESOLUTION, Position};
