//! The page of `--report`: one HTML file that shows what a replay or a sweep found.
//!
//! Promise: the file needs nothing else. It has no script, no font and no address of another host,
//! and its content policy forbids them; it stays small whatever the number of trips, because only
//! bins are drawn; and nothing that was read can change what the page is made of
//! (`markup`). The same input, configuration and seed give the same page but for the times that
//! clocks measured.

mod account;
mod atlas;
mod charts;
mod collect;
mod config_section;
mod document;
mod figures;
mod headline;
mod input_section;
mod map_section;
mod markup;
mod replay_page;
mod rules_section;
mod sketch;
mod solve_section;
mod time_section;
mod timeline;
mod tune;
mod wait_section;
mod write;

pub use account::Account;
pub use collect::Collected;
pub use replay_page::{Once, replay_page};
pub use tune::tune_page;
pub use write::{PageError, write_page};
