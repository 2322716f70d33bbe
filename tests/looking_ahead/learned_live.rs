//! Learned demand in the service: a car stays where riders are expected though nobody asked lately,
//! and a model file that is none stops the node at its start.

use kheya::{
    demand::{DemandCounts, Span, WeekClock},
    domain::{DurationMs, Place, UnixMs},
};
use serde_json::json;

use crate::{
    city::{Service, place},
    command_line::{Desk, run},
    live::two_cars_and_a_rider,
};

/// Writes a model by which somebody asks at the corner twice a minute, all week.
fn busy_corner(desk: &Desk) -> String {
    const STEP_MS: i64 = 30_000;
    const STEPS: i64 = 7 * 24 * 120;
    // a Monday
    let at = |step: i64| UnixMs::new(1_704_067_200_000) + DurationMs::new(step * STEP_MS);
    let corner: Place = serde_json::from_value(place(0.0)).unwrap();
    let span = Span {
        from: at(0),
        to: at(STEPS),
    };
    let clock = WeekClock::of("Asia/Dhaka").unwrap();
    let counts = DemandCounts::of(clock, span, (0..STEPS).map(|step| (at(step), corner)));
    desk.file("demand.json", counts.to_json().unwrap())
}

fn config(desk: &Desk, model: &str) -> String {
    let text = format!("[demand_models]\nahead = {model:?}\n");
    desk.file("kheya.toml", text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_car_stays_where_riders_are_expected_though_nobody_asked_lately() {
    let desk = Desk::new();
    let config = config(&desk, &busy_corner(&desk));
    let service = Service::on_memory_by(&config);
    // ten minutes of that corner are twenty riders; the other region has no model
    for (region, takes) in [("plain", "corner"), ("ahead", "beyond")] {
        let street = service.by_node(0, region);
        street.set(&json!({"demand_ahead_ms": 600_000})).await;
        two_cars_and_a_rider(&street).await;
        street.gets("between", takes).await;
        let windows = street.windows().await;
        assert!(!windows.is_empty());
        for window in &windows {
            assert_eq!(window["source"], "batch", "{window}");
            assert_eq!(window["requests"], 1, "phantoms are no requests: {window}");
        }
    }
    service.decides_the_same_again(2).await;
}

#[test]
fn a_model_file_that_is_none_stops_the_node_at_its_start() {
    let desk = Desk::new();
    let absent = desk.path("absent.json").display().to_string();
    for (model, named) in [
        (absent, "No such file"),
        (desk.file("garbage.json", "[1, 2"), "not a demand model"),
        (desk.path("").display().to_string(), "directory"),
    ] {
        let config = config(&desk, &model);
        let serve = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
        run(serve).refused(&["demand_models.ahead", &model, named]);
        // the configuration can be looked at all the same
        let shown = run([&serve[..], &["--print-config"]].concat()).done();
        assert!(shown.stdout.contains("[demand_models]"), "{}", shown.stdout);
        assert!(shown.stdout.contains(&model), "{}", shown.stdout);
    }
}
