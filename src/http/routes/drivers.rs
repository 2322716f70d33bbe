//! Drivers: pings, who is near, one driver, taking one offline.

use axum::{
    Json as Answer,
    extract::{FromRequest as _, Request, State},
};
use serde_json::Value;

use crate::{
    domain::{DriverId, Place, RegionId},
    http::{
        admission::Work,
        body::{BATCH, Json, inflate, media_type, off_the_workers},
        fields::{Errors, Object, entries, number},
        model::{
            drivers::{
                DriverAnswer, MAX_PINGS, NearbyAnswer, NearbyDriver, PingsAnswer, PingsBody,
                RemovedDriver, ping,
            },
            entries::{Batch, placed},
        },
        paths::{NoParams, Params, PathId},
        problem::{Code, Problem},
        state::AppState,
    },
    protocol::{DriverState, Ping, PingAnswer, Pings, RemoveDriver, RemoveDriverRefusal, Supply},
    store::Store,
    telemetry,
};

/// Pings of one step of the region: about a millisecond, in which its other calls wait.
const PINGS_A_STEP: usize = 1_000;
/// Longest line of NDJSON, in bytes.
const MAX_LINE: usize = 16 * 1024;

/// Takes pings in, as JSON or one a line. Each stands alone: a bad one costs the others nothing.
#[utoipa::path(
    post, path = "/v1/regions/{region}/drivers", tag = "drivers",
    params(("region" = String, Path, description = "The region")),
    request_body(content((PingsBody = "application/json"), (String = "application/x-ndjson"))),
    responses((status = 200, description = "Taken in", body = PingsAnswer)),
)]
pub(crate) async fn post_pings(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    _: NoParams,
    request: Request,
) -> Result<Answer<PingsAnswer>, Problem> {
    let batch = if media_type(request.headers()) == "application/x-ndjson" {
        read_lines(request).await?
    } else {
        let Json(body) = Json::<BATCH>::from_request(request, &()).await?;
        read_body(body)?
    };
    if batch.len() == 0 {
        let detail = "has at least one ping";
        return Err(Problem::invalid_field(
            "drivers",
            "empty",
            Value::Null,
            detail,
        ));
    }
    let permit = app.admission().enter(&region, Work::Pings).await?;
    let task = app.clone();
    app.detached(
        permit,
        async move { apply(task.store(), &region, batch).await },
    )
    .await
    .map(Answer)
}

fn read_body(body: Value) -> Result<Batch<Ping>, Problem> {
    let mut errors = Errors::default();
    let list = Object::open(body, "", &mut errors).and_then(|mut object| {
        let list = object.required_nested("drivers", entries);
        object.close();
        list
    });
    match list {
        Some(list) if errors.is_empty() => {
            if list.len() > MAX_PINGS {
                return Err(too_many());
            }
            Ok(Batch::read(list, ping))
        }
        _ => Err(Problem::invalid(errors.into_vec())),
    }
}

/// Reads pings line by line as they come; the text itself is not kept.
async fn read_lines(request: Request) -> Result<Batch<Ping>, Problem> {
    let mut batch = Batch::default();
    let last = inflate(request, BATCH, |text| {
        let end = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        for line in text[..end].split(|byte| *byte == b'\n') {
            read_line(line, &mut batch)?;
        }
        text.drain(..end);
        Ok(())
    })
    .await?;
    for line in last.split(|byte| *byte == b'\n') {
        read_line(line, &mut batch)?;
    }
    Ok(batch)
}

fn read_line(line: &[u8], batch: &mut Batch<Ping>) -> Result<(), Problem> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(());
    }
    if batch.len() >= MAX_PINGS {
        return Err(too_many());
    }
    if line.len() > MAX_LINE {
        batch.push_unreadable(format!("the line has more than {MAX_LINE} bytes"));
        return Ok(());
    }
    match serde_json::from_slice(line) {
        Ok(value) => batch.push(value, ping),
        Err(error) => batch.push_unreadable(format!("the line is not JSON: {error}")),
    }
    Ok(())
}

fn too_many() -> Problem {
    Problem::too_large(format!("a batch has at most {MAX_PINGS} pings"))
}

async fn apply(
    store: &dyn Store,
    region: &RegionId,
    batch: Batch<Ping>,
) -> Result<PingsAnswer, Problem> {
    let mut sum = PingAnswer::default();
    let mut rejected = batch.rejected;
    let mut pings = batch.entries;
    let mut places = batch.places.as_slice();
    // an unusable batch still makes its region known: the first step is taken even if it is empty
    loop {
        let rest = pings.split_off(pings.len().min(PINGS_A_STEP));
        let step = std::mem::replace(&mut pings, rest);
        let (here, later) = places.split_at(step.len());
        let answer = store.ping(region, Pings { pings: step }).await?;
        sum.accepted += answer.accepted;
        sum.moved += answer.moved;
        sum.stale += answer.stale;
        rejected.extend(placed(answer.rejected, here));
        places = later;
        if pings.is_empty() {
            break;
        }
    }
    rejected.sort_by_key(|entry| entry.index);
    telemetry::pings(region, &sum, rejected.len() as u64);
    for entry in &rejected {
        telemetry::reject(region, entry.code);
    }
    Ok(PingsAnswer {
        accepted: sum.accepted,
        moved: sum.moved,
        stale: sum.stale,
        rejected,
    })
}

/// Drivers near a place that could be chosen, the nearest first.
#[utoipa::path(
    get, path = "/v1/regions/{region}/drivers", tag = "drivers",
    params(
        ("region" = String, Path, description = "The region"),
        ("lat" = f64, Query, description = "Latitude", minimum = -90, maximum = 90),
        ("lng" = f64, Query, description = "Longitude", minimum = -180, maximum = 180),
        ("radius_km" = Option<f64>, Query, description = "Radius, by default 2", minimum = 0, maximum = 100),
        ("limit" = Option<u32>, Query, description = "Most entries, by default 100", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The drivers", body = NearbyAnswer)),
)]
pub(crate) async fn nearby(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    mut params: Params,
) -> Result<Answer<NearbyAnswer>, Problem> {
    let lat = params.required("lat", number(-90.0, 90.0));
    let lng = params.required("lng", number(-180.0, 180.0));
    let radius_km = params.value("radius_km", number(0.0, 100.0)).unwrap_or(2.0);
    let limit = params.limit();
    params.close()?;
    let (Some(lat), Some(lng)) = (lat, lng) else {
        return Err(Problem::new(Code::Invalid, "lat and lng are needed"));
    };
    let from =
        Place::new(lat, lng).map_err(|error| Problem::new(Code::Invalid, error.to_string()))?;
    let _permit = app.admission().enter(&region, Work::Reads).await?;
    let rules = app.store().overview(&region).await?.rules;
    let supply = app.store().supply(&region).await?;
    off_the_workers(move || {
        let is_offered = |driver: &crate::protocol::DriverView| {
            let fresh = driver
                .presence
                .as_ref()
                .is_some_and(|p| p.is_fresh(&rules, supply.now_ms));
            fresh && driver.ready && driver.state == DriverState::Available
        };
        nearest(&supply, from, radius_km, limit, is_offered)
    })
    .await
    .map(Answer)
}

fn nearest(
    supply: &Supply,
    from: Place,
    radius_km: f64,
    limit: usize,
    is_offered: impl Fn(&crate::protocol::DriverView) -> bool,
) -> NearbyAnswer {
    let mut found: Vec<NearbyDriver> = Vec::new();
    let from = from.on_sphere();
    for driver in supply.drivers.iter().filter(|driver| is_offered(driver)) {
        let Some(presence) = driver.presence.as_ref() else {
            continue;
        };
        let distance_km = from.distance_km(presence.place.on_sphere());
        if distance_km <= radius_km {
            found.push(NearbyDriver {
                id: driver.id.to_string(),
                lat: presence.place.lat(),
                lng: presence.place.lng(),
                distance_km,
                at_ms: presence.at_ms,
                vehicle_class: presence.vehicle_class.as_ref().map(ToString::to_string),
            });
        }
    }
    found.sort_by(|a, b| {
        a.distance_km
            .total_cmp(&b.distance_km)
            .then_with(|| a.id.cmp(&b.id))
    });
    found.truncate(limit);
    NearbyAnswer {
        drivers: found,
        now_ms: supply.now_ms,
    }
}

/// A driver: its state, position and claim.
#[utoipa::path(
    get, path = "/v1/regions/{region}/drivers/{driver}", tag = "drivers",
    params(
        ("region" = String, Path, description = "The region"),
        ("driver" = String, Path, description = "The driver"),
    ),
    responses((status = 200, description = "The driver", body = DriverAnswer)),
)]
pub(crate) async fn get_driver(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(driver): PathId<DriverId>,
    _: NoParams,
) -> Result<Answer<DriverAnswer>, Problem> {
    let _permit = app.admission().enter(&region, Work::Reads).await?;
    let view = app.store().driver(&region, &driver).await?;
    let view = view.ok_or_else(|| unknown(&driver))?;
    Ok(Answer(DriverAnswer::from(&*view)))
}

/// Takes a driver offline, as a ping of now would. Refused while it is held for a request.
#[utoipa::path(
    delete, path = "/v1/regions/{region}/drivers/{driver}", tag = "drivers",
    params(
        ("region" = String, Path, description = "The region"),
        ("driver" = String, Path, description = "The driver"),
    ),
    responses((status = 200, description = "It is offline", body = RemovedDriver)),
)]
pub(crate) async fn delete_driver(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(driver): PathId<DriverId>,
    _: NoParams,
) -> Result<Answer<RemovedDriver>, Problem> {
    let permit = app.admission().enter(&region, Work::Claims).await?;
    let task = app.clone();
    app.detached(permit, async move {
        let removal = RemoveDriver {
            driver_id: driver.clone(),
        };
        match task.store().remove_driver(&region, removal).await? {
            Ok(()) => Ok(Answer(RemovedDriver {
                id: driver.to_string(),
                state: DriverState::Offline,
            })),
            Err(RemoveDriverRefusal::UnknownDriver) => Err(unknown(&driver)),
            Err(RemoveDriverRefusal::Held) => {
                telemetry::reject(&region, Code::Held.as_str());
                let detail = "complete, release or cancel first; see the driver's claim";
                Err(Problem::new(Code::Held, detail))
            }
        }
    })
    .await
}

fn unknown(driver: &DriverId) -> Problem {
    let detail = format!("{driver} never pinged here, or is forgotten");
    Problem::new(Code::UnknownDriver, detail)
}
