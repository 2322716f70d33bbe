//! Claims: what the dispatch tier tells of its drivers.

use std::future::Future;

use axum::{Json as Answer, extract::State};

use crate::{
    domain::{DriverId, RegionId},
    http::{
        admission::Work,
        body::{Json, SMALL},
        fields::choice,
        model::claims::{
            self, ClaimCallAnswer, ClaimEntry, ClaimsPage, CompleteBody, ConfirmBody, ExtendBody,
            ReleaseBody, STATES,
        },
        paths::{NoParams, Params, PathId},
        problem::{Code, Problem},
        state::AppState,
    },
    protocol::{ClaimAnswer, ClaimRefusal, Complete, Confirm, Extend, Release},
    store::StoreError,
    telemetry,
};

/// The driver accepted: the trip is on. A repeat gets the first answer.
#[utoipa::path(
    post, path = "/v1/regions/{region}/claims/{driver}/confirm", tag = "claims",
    params(
        ("region" = String, Path, description = "The region"),
        ("driver" = String, Path, description = "The driver"),
    ),
    request_body = ConfirmBody,
    responses((status = 200, description = "The trip is on", body = ClaimCallAnswer)),
)]
pub(crate) async fn confirm(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(driver): PathId<DriverId>,
    _: NoParams,
    Json(body): Json<SMALL>,
) -> Result<Answer<ClaimCallAnswer>, Problem> {
    let claim = claims::confirm(driver, body)?;
    call(app, region, |app, region| async move {
        app.store().confirm(&region, Confirm { claim }).await
    })
    .await
}

/// The driver is given back: it may be chosen again, and the request waits again with its age.
#[utoipa::path(
    post, path = "/v1/regions/{region}/claims/{driver}/release", tag = "claims",
    params(
        ("region" = String, Path, description = "The region"),
        ("driver" = String, Path, description = "The driver"),
    ),
    request_body = ReleaseBody,
    responses((status = 200, description = "The driver is free", body = ClaimCallAnswer)),
)]
pub(crate) async fn release(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(driver): PathId<DriverId>,
    _: NoParams,
    Json(body): Json<SMALL>,
) -> Result<Answer<ClaimCallAnswer>, Problem> {
    let (claim, reason) = claims::release(driver, body)?;
    call(app, region, |app, region| async move {
        app.store()
            .release(&region, Release { claim, reason })
            .await
    })
    .await
}

/// The trip is over: the driver is free as its last ping says.
#[utoipa::path(
    post, path = "/v1/regions/{region}/claims/{driver}/complete", tag = "claims",
    params(
        ("region" = String, Path, description = "The region"),
        ("driver" = String, Path, description = "The driver"),
    ),
    request_body = CompleteBody,
    responses((status = 200, description = "The trip is over", body = ClaimCallAnswer)),
)]
pub(crate) async fn complete(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(driver): PathId<DriverId>,
    _: NoParams,
    Json(body): Json<SMALL>,
) -> Result<Answer<ClaimCallAnswer>, Problem> {
    let (claim, outcome) = claims::complete(driver, body)?;
    call(app, region, |app, region| async move {
        app.store()
            .complete(&region, Complete { claim, outcome })
            .await
    })
    .await
}

/// The lease ends later, within the rails; the fence stays.
#[utoipa::path(
    post, path = "/v1/regions/{region}/claims/{driver}/extend", tag = "claims",
    params(
        ("region" = String, Path, description = "The region"),
        ("driver" = String, Path, description = "The driver"),
    ),
    request_body = ExtendBody,
    responses((status = 200, description = "The lease is extended", body = ClaimCallAnswer)),
)]
pub(crate) async fn extend(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(driver): PathId<DriverId>,
    _: NoParams,
    Json(body): Json<SMALL>,
) -> Result<Answer<ClaimCallAnswer>, Problem> {
    let (claim, lease_ms) = claims::extend(driver, body)?;
    call(app, region, |app, region| async move {
        app.store()
            .extend(&region, Extend { claim, lease_ms })
            .await
    })
    .await
}

async fn call<F>(
    app: AppState,
    region: RegionId,
    verb: impl FnOnce(AppState, RegionId) -> F,
) -> Result<Answer<ClaimCallAnswer>, Problem>
where
    F: Future<Output = Result<Result<ClaimAnswer, ClaimRefusal>, StoreError>> + Send + 'static,
{
    let permit = app.admission().enter(&region, Work::Claims).await?;
    let running = verb(app.clone(), region.clone());
    app.detached(permit, async move {
        let answer = running.await?;
        answer
            .map(|answer| Answer(answer.into()))
            .map_err(|refusal| refused(&region, refusal))
    })
    .await
}

fn refused(region: &RegionId, refusal: ClaimRefusal) -> Problem {
    let code = match refusal {
        ClaimRefusal::UnknownRequest => Code::UnknownRequest,
        ClaimRefusal::LeaseExpired => Code::LeaseExpired,
        ClaimRefusal::AlreadyConfirmed => Code::AlreadyConfirmed,
        ClaimRefusal::RequestClosed => Code::RequestClosed,
        ClaimRefusal::NotConfirmed => Code::NotConfirmed,
        ClaimRefusal::FenceStale => Code::FenceStale,
        ClaimRefusal::NotHeld => Code::NotHeld,
    };
    telemetry::reject(region, code.as_str());
    if matches!(
        refusal,
        ClaimRefusal::LeaseExpired | ClaimRefusal::FenceStale
    ) {
        telemetry::fence_refused(region, code.as_str());
    }
    Problem::new(code, refusal.to_string())
}

/// A page of live claims, by driver.
#[utoipa::path(
    get, path = "/v1/regions/{region}/claims", tag = "claims",
    params(
        ("region" = String, Path, description = "The region"),
        ("state" = Option<String>, Query, description = "Only those in this state: offered, on_trip"),
        ("after" = Option<String>, Query, description = "Only those of drivers after this id"),
        ("limit" = Option<u32>, Query, description = "Most entries, by default 100", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The claims", body = ClaimsPage)),
)]
pub(crate) async fn list_claims(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    mut params: Params,
) -> Result<Answer<ClaimsPage>, Problem> {
    let state = params.value("state", choice(&STATES));
    let after = params.text("after", |text| {
        DriverId::new(text).map_err(|e| e.to_string())
    });
    let limit = params.limit();
    params.close()?;
    let _permit = app.admission().enter(&region, Work::Reads).await?;
    let page = app.store().claims(&region, state, after, limit).await?;
    Ok(Answer(ClaimsPage {
        claims: page.entries.iter().map(ClaimEntry::from).collect(),
        next: page.next.map(|id| id.to_string()),
    }))
}
