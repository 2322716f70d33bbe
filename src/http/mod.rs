//! The HTTP side of the live service.
//!
//! Promises: a call is checked whole before anything is done, and every error is told; a change, once
//! begun, goes on to its end although its client hangs up; whatever one region or caller does, the
//! others keep their permits (INV-11); every answer that can occur stands in the OpenAPI document.
//!
//! A call goes [`Server`] (connection limits and time-outs) → guard (token, role, region) →
//! admission (permits) → a route (check, store command, answer).

mod access;
mod admission;
mod body;
mod certificate;
mod connection;
mod fields;
mod lifecycle;
pub mod model;
mod observe;
mod openapi;
mod paths;
mod problem;
mod router;
mod routes;
mod server;
mod solving;
mod state;
mod tls;
mod tokens;

pub use admission::{Admission, Work};
pub use lifecycle::{Lifecycle, Phase};
pub use openapi::document;
pub use problem::{Code, PROBLEM_JSON, Problem};
pub use router::{admin_router, router};
pub use server::{ServeError, Server};
pub(crate) use solving::snapshot_error;
pub use state::{
    AppParts, AppState, Level, OwnWindowCall, OwnWindowError, OwnWindowFuture, WindowRuntime,
};
pub use tls::TlsError;
pub use tokens::{Caller, Regions, Role, TokenFile, Tokens, TokensError};
