//! The exact sparse solver: shortest augmenting paths with the leave-unmatched option built in.
//!
//! In the line of Jonker & Volgenant's LAPMOD ("A shortest augmenting path algorithm for dense and
//! sparse linear assignment problems", 1987): sort, bid for first prices, augment. Read
//! `side` (the form of the problem) and `useful` (the side to start from), `bid` and `choices`,
//! `search` and `phase` (paths one by one and many at once), then `run` (their order), `incumbent`
//! (what a cut search hands over) and `split` (parts that are solved apart).

mod bid;
mod choices;
mod incumbent;
mod phase;
mod run;
mod search;
mod side;
mod split;
mod useful;
mod weight;

pub(crate) use split::solve;
