//! Times `solve` on `.asn` files: `time_solve FILE... [--runs N] [--method M]`.
//!
//! One line a file: least and median solve time, then what the solution says.
#![allow(
    clippy::disallowed_methods,
    reason = "an example may read the clock and print"
)]

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use kheya_solver::{Options, asn, solve};

fn main() -> Result<(), Box<dyn Error>> {
    let mut runs = 7;
    let mut options = Options::default();
    let mut files = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => runs = arguments.next().ok_or("--runs needs a number")?.parse()?,
            "--method" => {
                options.method = arguments.next().ok_or("--method needs a name")?.parse()?;
            }
            _ => files.push(argument),
        }
    }
    for file in files {
        let started = Instant::now();
        let graph = asn::read(BufReader::with_capacity(1 << 18, File::open(&file)?), &file)?.graph()?;
        let read_ms = started.elapsed().as_secs_f64() * 1e3;
        let mut times = Vec::new();
        let mut solution = None;
        for _ in 0..runs.max(1) {
            let started = Instant::now();
            solution = Some(solve(&graph, &options)?);
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let Some(solution) = solution else { continue };
        solution.verify(&graph)?;
        let name = file
            .rsplit('/')
            .next()
            .unwrap_or(&file)
            .trim_end_matches(".asn");
        println!(
            "{name:<22} min {:>9.3} ms  median {:>9.3} ms  objective {:>12} {} matched {} components {} read {read_ms:.0} ms",
            times[0],
            times[times.len() / 2],
            solution.objective,
            solution.status,
            solution.matched(),
            solution.components,
        );
    }
    Ok(())
}
