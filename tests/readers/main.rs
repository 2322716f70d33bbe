//! The readers of recorded demand, from files to clean trips.

#[cfg(test)]
mod eras;
#[cfg(test)]
mod files;
#[cfg(test)]
mod garbage;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod identity;
#[cfg(test)]
mod parquet_files;
#[cfg(test)]
mod places;
#[cfg(test)]
mod times;
