//! How much is left: a lower bound on the rider cost of a replay, with full hindsight.
//!
//! Promise: no rule that this replay could run, whatever it knew beforehand, has a `rider_cost_s`
//! below [`Bound::rider_cost_s`] for the scenario. Windows, plans, phantoms, riders and drivers who
//! refuse only delay or lose; a rule without windows is covered too.
//!
//! The relaxation is an assignment of requests to *availabilities*: each car where and when it
//! starts, and each trip's drop-off at the earliest instant at which its car could be free there.
//!
//! - Each availability is used at most once, each request at most once.
//! - Request i from availability a costs `max(0, free_a − requested_i)` + pickup ETA. The pair must
//!   keep to `max_wait_ms`, `max_pickup_eta_s`, the widest search radius, and a starting car's
//!   `to_ms`.
//! - A request that is not served costs `max_wait_s + max_pickup_eta_s` and takes up its own
//!   drop-off: a trip that nobody drove leaves no car behind.
//! - All trips together take up no more car time than there is: each takes its car from where it is
//!   sent until the drop-off, and a request may wait longer for that than its car needs. The time
//!   has a price by the clock, the same for all cars, that is fixed first.
//!
//! Every schedule of the closed loop is such an assignment and costs at least as much, so the least
//! one is a bound. Left out are: that a car which picks up late is free late (each drop-off has the
//! earliest time of any schedule), a car's `to_ms` after its first trip, the waiting for a window's
//! close, `max_snapshot_requests`, `max_candidates`, and who refuses. Where cars are plenty the
//! bound is close; in a shortage, where every served rider delays the next, it is loose, though in a
//! deep one car time makes up for much of that.
//!
//! It breaks if an idle car could move or a trip be shorter than recorded: neither happens here.
//! Times are rounded down to whole milliseconds throughout, so that rounding keeps it a bound.
//!
//! The offline comparison is that of competitive analysis; the bound itself is linear-programming
//! duality, with the columns generated as they are found to matter (Dantzig & Wolfe 1960).

mod assignment;
mod availability;
mod car_time;
mod nearest;
mod told;

pub use assignment::{BoundError, BoundOptions, rider_cost_bound};
pub use told::{AboveBound, Bound, RELAXATION};
