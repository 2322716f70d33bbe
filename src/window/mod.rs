//! Windows of live regions: collect, close, decide, claim, seal; watched by every node.
//!
//! Three things happen to a region on each node, and none of them waits for another: the leader
//! decides its windows (`leader`, on the service's own threads), every node watches for windows
//! that were missed and for what is due (`watch`, on a thread that no solve can block), and the
//! dispatch tier's own windows are decided when it asks (`own`).

mod claims;
mod decider;
mod leader;
mod level;
mod node;
mod own;
mod own_answer;
mod own_constraints;
mod report;
mod snapshot;
mod tell;
mod watch;

pub use decider::{Decider, StraightLineDecider};
pub use node::{Node, NodeOptions};
pub use snapshot::window_snapshot;
