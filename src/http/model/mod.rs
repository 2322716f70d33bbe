//! What goes over the wire: bodies read into checked types, answers written from views. The schemas
//! of the OpenAPI document stand beside them.

pub mod claims;
pub mod constraints;
pub mod drivers;
pub mod entries;
pub mod events;
pub mod own;
pub mod problem;
pub mod reconcile;
pub mod regions;
pub mod requests;
pub mod solve;
pub mod windows;
