//! The page of a sweep: what to set and why, what each setting costs, and how sure that is.

mod by_hour;
mod by_rule;
mod by_setting;
mod curves;
mod recommended;
mod tune_page;

pub use tune_page::tune_page;
