//! The record of a live node: what is written, what is read back, and what survives.

#[cfg(test)]
mod city;
#[cfg(test)]
mod constrained;
#[cfg(test)]
mod deciding;
#[cfg(test)]
mod frozen;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod replayed;
#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod torn;
#[cfg(test)]
mod verified;
#[cfg(test)]
mod windows;
