//! A recorded city streamed into a real server: every request that was accepted ends in exactly one
//! way, no car is given twice, readers that hang up miss nothing, and tuning the window meanwhile
//! changes none of that.
//!
//! By default a stretch of `data/evening-rush` at 60 times its speed. For a longer run by hand:
//! `STREAM_REQUESTS=requests.csv STREAM_DRIVERS=drivers.csv STREAM_SPEED=10
//! STREAM_SECONDS=600 cargo test --release --test stream_city -- --nocapture`
//! (both files in Kheya's plain CSV).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of a test fail it by panicking"
)]

mod check;
mod readers;
mod server;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use kheya::{
    domain::Place,
    replay::input::{ReadOptions, Trip, read_demand, read_drivers},
};
use serde_json::{Value, json};
use server::{Api, Server};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

/// Share of offers that drivers decline, in one of so many.
const DECLINES_ONE_OF: u64 = 20;

/// How often each driver tells its place.
const PING_EVERY: Duration = Duration::from_secs(4);

/// Longest wait of a rider in the streamed world.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Length of the windows at first, and after they are tuned in the middle of the run.
const WINDOW_MS: u64 = 1000;
const TUNED_WINDOW_MS: u64 = 700;

struct Settings {
    requests: PathBuf,
    drivers: PathBuf,
    speed: f64,
    lasts: Duration,
}

impl Settings {
    fn read() -> Self {
        let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/evening-rush");
        let path =
            |name: &str, file: &str| env::var(name).map_or_else(|_| data.join(file), PathBuf::from);
        let number = |name: &str, or: f64| env::var(name).map_or(or, |text| text.parse().unwrap());
        Self {
            requests: path("STREAM_REQUESTS", "requests.csv"),
            drivers: path("STREAM_DRIVERS", "drivers.csv"),
            speed: number("STREAM_SPEED", 60.0),
            lasts: Duration::from_secs_f64(number("STREAM_SECONDS", 25.0)),
        }
    }
}

/// The cars of the streamed world: where each is while it is idle.
type Idle = Arc<Mutex<BTreeMap<String, Place>>>;

/// The recorded trips by request.
type Trips = Arc<BTreeMap<String, Trip>>;

#[tokio::test(flavor = "multi_thread")]
async fn every_accepted_request_ends_once_and_no_event_is_missed() {
    let settings = Settings::read();
    let files = std::slice::from_ref(&settings.requests);
    let demand = read_demand(files, &ReadOptions::default(), &|_, _| ()).unwrap();
    let fleet = read_drivers(&settings.drivers).unwrap();
    let by_id = |trip: &Trip| (trip.request_id.to_string(), trip.clone());
    let trips: Trips = Arc::new(demand.trips.iter().map(by_id).collect());
    let cars = fleet
        .iter()
        .map(|car| (car.driver_id.to_string(), car.place));
    let idle: Idle = Arc::new(Mutex::new(cars.collect()));

    let server = Server::start(&[]);
    let api = Api::new(&server.url, "city");
    configure(&api).await;
    let (streamed, mut from_stream) = mpsc::unbounded_channel();
    let (paged, mut from_pages) = mpsc::unbounded_channel();
    let patience = Duration::from_secs(3);
    let stream = tokio::spawn(readers::read_stream(api.clone(), patience, streamed));
    let pages = tokio::spawn(readers::read_pages(api.clone(), paged));
    let pings = tokio::spawn(ping(api.clone(), idle.clone()));
    let tuning = tokio::spawn(tune(api.clone(), settings.lasts / 2));
    let accepted: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let sender = tokio::spawn(send_requests(
        api.clone(),
        demand.trips.clone(),
        settings.speed,
        settings.lasts,
        accepted.clone(),
    ));

    let mut seen = run_city(&settings, &api, &idle, &trips, &accepted, &mut from_stream).await;
    sender.await.unwrap();
    assert!(!pings.is_finished(), "the pings failed");
    check_tuned(&api, tuning.await.unwrap()).await;
    // whatever came after the last end; then both readers must have seen the same
    tokio::time::sleep(Duration::from_secs(2)).await;
    pings.abort();
    seen.extend(std::iter::from_fn(|| from_stream.try_recv().ok()));
    let pages_seen: Vec<Value> = std::iter::from_fn(|| from_pages.try_recv().ok()).collect();
    stream.abort();
    pages.abort();

    check_readers(&seen, &pages_seen);
    let ends = check::check_events(&seen);
    let accepted = accepted.lock().unwrap().clone();
    let ended: BTreeSet<String> = ends.keys().cloned().collect();
    assert_eq!(accepted, ended, "every accepted request ended exactly once");
    let confirmed = ends.values().filter(|end| *end == "confirmed").count();
    println!(
        "{} requests accepted, {confirmed} confirmed, {} events, read twice",
        accepted.len(),
        seen.len()
    );
    assert!(
        accepted.len() > 200 && confirmed > 100,
        "the load was too small to show anything"
    );
    for (request, end) in ends.iter().take(50) {
        let (status, answer) = api.get(&format!("/requests/{request}")).await;
        let state = answer["state"].as_str();
        assert_eq!((status, state), (200, Some(end.as_str())), "{answer}");
    }
    drop(server);
}

async fn configure(api: &Api) {
    let config = json!({
        "max_wait_ms": MAX_WAIT.as_millis() as u64,
        "window_ms": WINDOW_MS,
        "budget_ms": 300,
    });
    let path = "/config";
    let (status, answer) = api.send(reqwest::Method::PATCH, path, Some(&config)).await;
    assert_eq!(status, 200, "{answer}");
}

/// Changes the length of the window while cars are moving; gives the version that holds from then.
async fn tune(api: Api, after: Duration) -> u64 {
    tokio::time::sleep(after).await;
    let config = json!({ "window_ms": TUNED_WINDOW_MS });
    let path = "/config";
    let (status, answer) = api.send(reqwest::Method::PATCH, path, Some(&config)).await;
    assert_eq!(status, 200, "{answer}");
    answer["config_version"].as_u64().unwrap()
}

/// The reports from the tuned version on show the new length, and those before the old one.
async fn check_tuned(api: &Api, version: u64) {
    let (status, answer) = api.get("/windows?limit=1000").await;
    assert_eq!(status, 200, "{answer}");
    let reports = answer["windows"].as_array().unwrap();
    let tuned = |report: &&Value| report["config_version"].as_u64().unwrap() >= version;
    assert!(
        reports.iter().any(|report| tuned(&report)),
        "no window was tuned"
    );
    for report in reports {
        let wanted = if tuned(&report) {
            TUNED_WINDOW_MS
        } else {
            WINDOW_MS
        };
        assert_eq!(report["window_ms"], wanted, "{report}");
    }
}

/// Drives every assigned car until every accepted request has ended; gives the events seen.
async fn run_city(
    settings: &Settings,
    api: &Api,
    idle: &Idle,
    trips: &Trips,
    accepted: &Arc<Mutex<BTreeSet<String>>>,
    events: &mut mpsc::UnboundedReceiver<Value>,
) -> Vec<Value> {
    let sent_by = Instant::now() + settings.lasts + Duration::from_secs(2);
    let ended_by = sent_by + MAX_WAIT + Duration::from_secs(40);
    let (mut seen, mut finals, mut drives) = (Vec::new(), 0, JoinSet::new());
    while accepted.lock().unwrap().len() > finals || Instant::now() < sent_by {
        let open = accepted.lock().unwrap().len() - finals;
        assert!(Instant::now() < ended_by, "{open} requests did not end");
        let next = tokio::time::timeout(Duration::from_millis(200), events.recv());
        let Ok(Some(event)) = next.await else {
            continue;
        };
        match event["type"].as_str().unwrap() {
            "confirmed" | "cancelled" | "expired" => finals += 1,
            "assigned" => {
                let (api, idle, trips) = (api.clone(), idle.clone(), trips.clone());
                drives.spawn(drive(api, event.clone(), idle, trips, settings.speed));
            }
            _ => {}
        }
        seen.push(event);
    }
    while let Some(driven) = drives.try_join_next() {
        driven.unwrap();
    }
    seen
}

/// Both readers see the same events in the same order, up to where the slower one is.
fn check_readers(stream: &[Value], pages: &[Value]) {
    let both = stream.len().min(pages.len());
    assert!(stream[..both] == pages[..both], "the readers differ");
    assert!(
        stream.len().max(pages.len()) - both < 500,
        "a reader fell behind"
    );
}

/// Tells the place of every idle car, again and again.
async fn ping(api: Api, idle: Idle) {
    loop {
        let next = Instant::now() + PING_EVERY;
        let cars: Vec<(String, Place)> = idle
            .lock()
            .unwrap()
            .iter()
            .map(|(id, place)| (id.clone(), *place))
            .collect();
        for cars in cars.chunks(2000) {
            let at_ms = now_ms();
            let drivers: Vec<Value> = cars
                .iter()
                .map(|(id, place)| json!({"id": id, "lat": place.lat(), "lng": place.lng(), "at_ms": at_ms}))
                .collect();
            let (status, answer) = api.post("/drivers", &json!({ "drivers": drivers })).await;
            assert_eq!(status, 200, "{answer}");
        }
        tokio::time::sleep_until(next).await;
    }
}

/// Sends the recorded requests at `speed` times their pace; remembers who was accepted.
async fn send_requests(
    api: Api,
    trips: Vec<Trip>,
    speed: f64,
    lasts: Duration,
    accepted: Arc<Mutex<BTreeSet<String>>>,
) {
    // the cars are there before the riders
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (started, first) = (Instant::now(), trips[0].requested_at);
    let mut rest = trips.as_slice();
    while !rest.is_empty() && started.elapsed() < lasts {
        let passed_s = started.elapsed().as_secs_f64() * speed;
        let due = rest.partition_point(|trip| (trip.requested_at - first).as_seconds() <= passed_s);
        let (now, later) = rest.split_at(due.min(500));
        rest = later;
        if !now.is_empty() {
            let requests: Vec<Value> = now
                .iter()
                .map(|trip| json!({"id": trip.request_id, "pickup": trip.pickup, "dropoff": trip.dropoff}))
                .collect();
            let body = json!({ "requests": requests });
            let (status, answer) = api.post("/requests", &body).await;
            assert!(matches!(status, 202 | 503 | 429), "{status} {answer}");
            if status == 202 {
                // the repeat of what was accepted gets the first answer
                let (again, repeated) = api.post("/requests", &body).await;
                assert_eq!(again, 202, "{repeated}");
                let mut accepted = accepted.lock().unwrap();
                for (first, second) in entries(&answer).zip(entries(&repeated)) {
                    assert_eq!(first["id"], second["id"]);
                    assert_eq!(second["replayed"], true, "{second}");
                    accepted.insert(first["id"].as_str().unwrap().to_owned());
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn entries(answer: &Value) -> impl Iterator<Item = &Value> {
    answer["requests"].as_array().unwrap().iter()
}

/// A driver's part: accept or decline, drive, drop off.
async fn drive(api: Api, event: Value, idle: Idle, trips: Trips, speed: f64) {
    let driver = event["driver_id"].as_str().unwrap().to_owned();
    let fence = event["fence"].as_u64().unwrap();
    let claim = json!({"request_id": event["request_id"], "fence": fence});
    if fence.is_multiple_of(DECLINES_ONE_OF) {
        let mut release = claim.clone();
        release["reason"] = json!("declined");
        let (status, answer) = api
            .post(&format!("/claims/{driver}/release"), &release)
            .await;
        assert!(matches!(status, 200 | 409), "{status} {answer}");
        return;
    }
    let (status, answer) = api.post(&format!("/claims/{driver}/confirm"), &claim).await;
    if status == 409 {
        return; // the lease ran out before the event was read
    }
    assert_eq!(status, 200, "{answer}");
    idle.lock().unwrap().remove(&driver);
    let trip = &trips[event["request_id"].as_str().unwrap()];
    let busy_s = (event["eta_s"].as_f64().unwrap() + trip.trip_s.unwrap_or(600.0)) / speed;
    tokio::time::sleep(Duration::from_secs_f64(busy_s)).await;
    let (status, answer) = api
        .post(&format!("/claims/{driver}/complete"), &claim)
        .await;
    assert_eq!(status, 200, "{answer}");
    let (again, repeated) = api
        .post(&format!("/claims/{driver}/complete"), &claim)
        .await;
    assert_eq!(
        (again, &repeated["state"]),
        (200, &answer["state"]),
        "a repeat gets the first answer"
    );
    idle.lock().unwrap().insert(driver, trip.dropoff);
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    since.as_millis() as u64
}
