//! Times `solve` on `.asn` files: `time_solve FILE... [--runs N] [--method M] [--budget-ms B]`.
//!
//! One line a file: how long solves took, then what the last solution says.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::time::{Duration, Instant};

use kheya_solver::{Budget, Graph, Options, Solution, asn, solve};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut runs = 7_usize;
    let mut options = Options::default();
    let mut files = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--runs" => runs = value()?.parse()?,
            "--method" => options.method = value()?.parse()?,
            "--budget-ms" => {
                let budget = Duration::from_secs_f64(value()?.parse::<f64>()? / 1e3);
                options.budget = Some(Budget::wall(budget));
            }
            _ => files.push(argument),
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().build()?;
    for file in files {
        let graph = asn::read(BufReader::with_capacity(1 << 18, File::open(&file)?), &file)?;
        pool.install(|| report(&file, &graph, &options, runs.max(1)))?;
    }
    Ok(())
}

fn report(
    file: &str,
    graph: &Graph,
    options: &Options<'_>,
    runs: usize,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut times = Vec::with_capacity(runs);
    let mut timed_solve = || -> Result<Solution, Box<dyn Error + Send + Sync>> {
        let started = Instant::now();
        let solution = solve(graph, options)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        Ok(solution)
    };
    let mut solution = timed_solve()?;
    for _ in 1..runs {
        solution = timed_solve()?;
    }
    solution.verify(graph)?;
    times.sort_by(f64::total_cmp);
    let name = file
        .rsplit('/')
        .next()
        .unwrap_or(file)
        .trim_end_matches(".asn");
    println!(
        "{name:<22} ms: min {:8.3} median {:8.3} p99.9 {:8.3} max {:8.3}  {} objective {} gap {:.4} matched {} components {}",
        times[0],
        times[runs / 2],
        times[runs * 999 / 1000],
        times[runs - 1],
        solution.status,
        solution.objective,
        solution.gap(),
        solution.matched(),
        solution.components,
    );
    Ok(())
}
