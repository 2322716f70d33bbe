//! Writes an instance to standard output: `make_instance FAMILY EDGES [SEED] > instance.asn`.
//!
//! The families are those of `tests/random_graphs/families.rs`, in lower case: `plenty`, `macholwien`.
//! A wrong name lists them.
#![allow(clippy::expect_used, reason = "shared with the tests")]

#[path = "../tests/random_graphs/mod.rs"]
mod random_graphs;

use std::error::Error;
use std::io::{BufWriter, stdout};

use kheya_solver::asn;
use random_graphs::families::Family;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(name), Some(edges)) = (arguments.first(), arguments.get(1)) else {
        return Err("make_instance FAMILY EDGES [SEED]".into());
    };
    let names = Family::ALL.map(Family::name).join(", ");
    let family = Family::named(name).ok_or(format!("{name} is none of {names}"))?;
    let seed = arguments.get(2).map_or(Ok(1), |seed| seed.parse())?;
    let graph = family.graph(edges.parse()?, seed);
    asn::write(&graph, &mut BufWriter::new(stdout().lock()))?;
    Ok(())
}
