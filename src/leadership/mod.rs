//! Leadership: which node decides the windows of a region, and how it holds that.

mod hold;
mod spread;

pub use hold::{Duty, Lead, LeaseTimes, draw_nonce, hold};
pub use spread::share_of;
