//! Requests: intake that may be repeated, states, taking one back.

use axum::{Json as Answer, extract::State, http::StatusCode};
use serde_json::Value;

use crate::{
    domain::{RegionId, RequestId, UnixMs},
    http::{
        admission::Work,
        body::{BATCH, Json},
        fields::{Errors, Object, choice, entries},
        model::{
            entries::{Batch, none_taken, placed},
            requests::{
                CancelledAnswer, MAX_REQUESTS, RequestAnswer, RequestsAnswer, RequestsBody,
                RequestsPage, STATES, TakenRequest, request,
            },
        },
        paths::{NoParams, Params, PathId},
        problem::{Code, Problem},
        state::{AppState, Level},
    },
    protocol::{CancelRefusal, CancelRequest, Intake, IntakeRefusal, RequestDraft, RequestView},
    telemetry,
};

/// Takes requests in. Sending one again with the same id and body gives the first answer; the same
/// id with another body is refused.
#[utoipa::path(
    post, path = "/v1/regions/{region}/requests", tag = "requests",
    params(("region" = String, Path, description = "The region")),
    request_body = RequestsBody,
    responses((status = 202, description = "At least one was taken in", body = RequestsAnswer)),
)]
pub(crate) async fn post_requests(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    _: NoParams,
    Json(body): Json<BATCH>,
) -> Result<(StatusCode, Answer<RequestsAnswer>), Problem> {
    app.lifecycle().takes_work()?;
    if app.runtime().level(&region) == Level::Unavailable {
        return Err(Problem::new(
            Code::StoreUnavailable,
            "the store cannot be reached",
        ));
    }
    let batch = read_body(body)?;
    let permit = app.admission().enter(&region, Work::Intake).await?;
    let task = app.clone();
    app.detached(permit, async move { take_in(&task, &region, batch).await })
        .await
        .map(|answer| (StatusCode::ACCEPTED, Answer(answer)))
}

fn read_body(body: Value) -> Result<Batch<RequestDraft>, Problem> {
    let mut errors = Errors::default();
    let list = Object::open(body, "", &mut errors).and_then(|mut object| {
        let list = object.required_nested("requests", entries);
        object.close();
        list
    });
    let list = match list {
        Some(list) if errors.is_empty() => list,
        _ => return Err(Problem::invalid(errors.into_vec())),
    };
    if list.is_empty() {
        let detail = "has at least one request";
        return Err(Problem::invalid_field(
            "requests",
            "empty",
            Value::Null,
            detail,
        ));
    }
    if list.len() > MAX_REQUESTS {
        let detail = format!("a batch has at most {MAX_REQUESTS} requests");
        return Err(Problem::too_large(detail));
    }
    Ok(Batch::read(list, request))
}

async fn take_in(
    app: &AppState,
    region: &RegionId,
    batch: Batch<RequestDraft>,
) -> Result<RequestsAnswer, Problem> {
    let mut rejected = batch.rejected;
    let mut requests = Vec::new();
    if !batch.entries.is_empty() {
        let intake = Intake {
            requests: batch.entries,
        };
        let answer = match app.store().intake(region, intake).await? {
            Ok(answer) => answer,
            Err(refusal) => {
                let problem = refused(app, region, refusal).await;
                telemetry::reject(region, problem.code().as_str());
                return Err(problem);
            }
        };
        rejected.extend(placed(answer.rejected, &batch.places));
        requests = answer
            .requests
            .into_iter()
            .map(TakenRequest::from)
            .collect();
    }
    rejected.sort_by_key(|entry| entry.index);
    let replayed = requests.iter().filter(|taken| taken.replayed).count();
    telemetry::intake(region, "accepted", (requests.len() - replayed) as u64);
    telemetry::intake(region, "replayed", replayed as u64);
    telemetry::intake(region, "rejected", rejected.len() as u64);
    for entry in &rejected {
        telemetry::reject(region, entry.code);
    }
    if requests.is_empty() {
        return Err(none_taken("requests", &rejected));
    }
    Ok(RequestsAnswer { requests, rejected })
}

async fn refused(app: &AppState, region: &RegionId, refusal: IntakeRefusal) -> Problem {
    match refusal {
        IntakeRefusal::Quarantined { until_ms } => quarantined(app, region, until_ms).await,
        IntakeRefusal::Paused => Problem::new(Code::Paused, "ops paused the intake of this region"),
    }
}

/// 503 `quarantined`, to come again when the quarantine ends by the store's clock.
pub(super) async fn quarantined(app: &AppState, region: &RegionId, until_ms: UnixMs) -> Problem {
    let detail = format!("the store lost data: reconcile; served again at {until_ms}");
    let problem = Problem::new(Code::Quarantined, detail);
    match app.store().overview(region).await {
        Ok(view) => problem.retry_after_ms((until_ms - view.now_ms).get()),
        Err(_) => problem,
    }
}

/// A page of requests, by id.
#[utoipa::path(
    get, path = "/v1/regions/{region}/requests", tag = "requests",
    params(
        ("region" = String, Path, description = "The region"),
        ("state" = Option<String>, Query, description = "Only those in this state: pending, assigned, confirmed, cancelled, expired, released"),
        ("after" = Option<String>, Query, description = "Only those after this id"),
        ("limit" = Option<u32>, Query, description = "Most entries, by default 100", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The requests", body = RequestsPage)),
)]
pub(crate) async fn list_requests(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    mut params: Params,
) -> Result<Answer<RequestsPage>, Problem> {
    let state = params.value("state", choice(&STATES));
    let after = params.text("after", |text| {
        RequestId::new(text).map_err(|e| e.to_string())
    });
    let limit = params.limit();
    params.close()?;
    let _permit = app.admission().enter(&region, Work::Reads).await?;
    let page = app.store().requests(&region, state, after, limit).await?;
    Ok(Answer(RequestsPage {
        requests: page.entries.iter().map(RequestAnswer::from).collect(),
        next: page.next.map(|id| id.to_string()),
    }))
}

/// A request: where it stands, and whom it was given.
#[utoipa::path(
    get, path = "/v1/regions/{region}/requests/{request}", tag = "requests",
    params(
        ("region" = String, Path, description = "The region"),
        ("request" = String, Path, description = "The request"),
    ),
    responses((status = 200, description = "The request", body = RequestAnswer)),
)]
pub(crate) async fn get_request(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(request): PathId<RequestId>,
    _: NoParams,
) -> Result<Answer<RequestAnswer>, Problem> {
    let _permit = app.admission().enter(&region, Work::Reads).await?;
    let view: Option<Box<RequestView>> = app.store().request(&region, &request).await?;
    let view = view.ok_or_else(|| unknown(&request))?;
    Ok(Answer(RequestAnswer::from(&*view)))
}

/// Takes a request back; a driver held for it is free at once. May be repeated.
#[utoipa::path(
    delete, path = "/v1/regions/{region}/requests/{request}", tag = "requests",
    params(
        ("region" = String, Path, description = "The region"),
        ("request" = String, Path, description = "The request"),
    ),
    responses((status = 200, description = "It is cancelled", body = CancelledAnswer)),
)]
pub(crate) async fn cancel_request(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(request): PathId<RequestId>,
    _: NoParams,
) -> Result<Answer<CancelledAnswer>, Problem> {
    let permit = app.admission().enter(&region, Work::Claims).await?;
    let task = app.clone();
    app.detached(permit, async move {
        let cancel = CancelRequest {
            request_id: request.clone(),
        };
        let cancelled = task.store().cancel(&region, cancel).await?;
        let cancelled = cancelled.map_err(|refusal| {
            let problem = match refusal {
                CancelRefusal::UnknownRequest => unknown(&request),
                CancelRefusal::NotHeld => Problem::new(Code::NotHeld, refusal.to_string()),
                CancelRefusal::AlreadyConfirmed => {
                    Problem::new(Code::AlreadyConfirmed, "its trip is on: complete the claim")
                }
                CancelRefusal::RequestClosed => {
                    Problem::new(Code::RequestClosed, refusal.to_string())
                }
            };
            telemetry::reject(&region, problem.code().as_str());
            problem
        })?;
        Ok(Answer(CancelledAnswer::from(cancelled)))
    })
    .await
}

fn unknown(request: &RequestId) -> Problem {
    let detail = format!("{request} was never taken in here, or is forgotten");
    Problem::new(Code::UnknownRequest, detail)
}
