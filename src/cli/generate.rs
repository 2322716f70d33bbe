//! `kheya generate`: the recorded demand of a made-up city, as files that `kheya replay` reads.

use std::{fs, io, path::PathBuf};

use clap::Args;

use super::{Failure, check_out, print};
use crate::generate::{Generated, Order, generate as draw};

/// Arguments of `kheya generate`.
#[derive(Args)]
pub(super) struct GenerateArgs {
    /// Hours of demand; under 12 they lie around the evening rush, from 12 on they start at midnight
    #[arg(long)]
    hours: f64,
    /// Mean requests an hour
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    requests_per_hour: u32,
    /// Size of the fleet
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    drivers: u32,
    /// Seed: the same seed gives the same files
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory for requests.csv and drivers.csv
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Longest recording: a fortnight.
const MOST_HOURS: f64 = 336.0;
/// Most requests in one recording.
const MOST_REQUESTS: f64 = 20_000_000.0;

pub(super) fn generate(args: &GenerateArgs) -> Result<(), Failure> {
    if !(args.hours > 0.0 && args.hours <= MOST_HOURS) {
        return Err(Failure::Input(format!(
            "--hours {}: above 0 and at most {MOST_HOURS}",
            args.hours
        )));
    }
    let wanted = args.hours * f64::from(args.requests_per_hour);
    if !(0.5..=MOST_REQUESTS).contains(&wanted) {
        return Err(Failure::Input(format!(
            "{wanted} requests: 1 to {MOST_REQUESTS} can be made"
        )));
    }
    check_out("--out", &args.out)?;
    let recording = draw(&Order {
        hours: args.hours,
        requests_per_hour: args.requests_per_hour,
        drivers: args.drivers,
        seed: args.seed,
    });
    write(args, &recording)
        .map_err(|error| Failure::Broken(format!("{}: {error}", args.out.display())))?;
    print(&format!(
        "{} requests and {} drivers in {}\n",
        recording.trips.len(),
        recording.drivers.len(),
        args.out.display()
    ))
}

/// Writes both files beside their places, then puts them there.
fn write(args: &GenerateArgs, recording: &Generated) -> io::Result<()> {
    fs::create_dir_all(&args.out)?;
    let partial = |name: &str| args.out.join(format!(".{name}.partial"));
    let mut requests = csv::Writer::from_path(partial("requests.csv"))?;
    requests.write_record([
        "request_id",
        "requested_at_ms",
        "pickup_lat",
        "pickup_lng",
        "dropoff_lat",
        "dropoff_lng",
        "trip_s",
    ])?;
    let digits = |count: usize| count.saturating_sub(1).to_string().len();
    let width = digits(recording.trips.len());
    for (n, trip) in recording.trips.iter().enumerate() {
        requests.write_record([
            format!("r{n:0width$}"),
            trip.requested_at.to_string(),
            trip.pickup.lat().to_string(),
            trip.pickup.lng().to_string(),
            trip.dropoff.lat().to_string(),
            trip.dropoff.lng().to_string(),
            trip.trip_s.to_string(),
        ])?;
    }
    requests.flush()?;
    let mut drivers = csv::Writer::from_path(partial("drivers.csv"))?;
    drivers.write_record(["driver_id", "from_ms", "lat", "lng"])?;
    let width = digits(recording.drivers.len());
    for (n, driver) in recording.drivers.iter().enumerate() {
        drivers.write_record([
            format!("d{n:0width$}"),
            driver.from.to_string(),
            driver.place.lat().to_string(),
            driver.place.lng().to_string(),
        ])?;
    }
    drivers.flush()?;
    for name in ["requests.csv", "drivers.csv"] {
        fs::rename(partial(name), args.out.join(name))?;
    }
    Ok(())
}
