//! The exact sparse solver: shortest augmenting paths with the leave-unmatched option built in.
//!
//! In the line of Jonker & Volgenant's LAPMOD ("A shortest augmenting path algorithm for dense and
//! sparse linear assignment problems", 1987).

mod bid;
mod run;
mod search;
mod side;
mod weight;

pub(crate) use run::solve;
