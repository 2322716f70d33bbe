//! Windows: reports of the region's, and the dispatch tier's own.

use axum::{
    Json as Answer,
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};

use crate::{
    domain::{RegionId, WindowId, WindowSeq},
    http::{
        admission::Work,
        body::{Json, WINDOW, off_the_workers},
        model::{
            own::{OwnWindowAnswer, OwnWindowBody, own_window},
            windows::{ReportBody, WindowsPage},
        },
        paths::{NoParams, Params, PathId, PathPart as _},
        problem::{Code, Problem},
        state::{AppState, Level, OwnWindowError},
    },
    protocol::OwnRefusal,
    telemetry,
};

/// Decides a window of the caller's own, with claims. The same id and body get the same bytes again,
/// from any node; the same id with another body is refused.
#[utoipa::path(
    post, path = "/v1/regions/{region}/windows/{window_id}/solve", tag = "windows",
    params(
        ("region" = String, Path, description = "The region"),
        ("window_id" = String, Path, description = "The caller's name of the window"),
    ),
    request_body = OwnWindowBody,
    responses((status = 200, description = "Decided", body = OwnWindowAnswer)),
)]
pub(crate) async fn solve_own(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(window_id): PathId<WindowId>,
    _: NoParams,
    Json(body): Json<WINDOW>,
) -> Result<Response, Problem> {
    app.lifecycle().takes_work()?;
    if app.runtime().level(&region) == Level::Unavailable {
        return Err(Problem::new(
            Code::StoreUnavailable,
            "the store cannot be reached",
        ));
    }
    let call = off_the_workers(move || own_window(window_id, body)).await??;
    let permit = app.admission().enter(&region, Work::Intake).await?;
    let task = app.clone();
    let answer = app.detached(permit, async move {
        match task.runtime().solve_own(&region, call).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let problem = refused(&task, &region, error).await;
                telemetry::reject(&region, problem.code().as_str());
                Err(problem)
            }
        }
    });
    let answer = answer.await?;
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    Ok((content_type, answer.to_string()).into_response())
}

async fn refused(app: &AppState, region: &RegionId, error: OwnWindowError) -> Problem {
    let refusal = match error {
        OwnWindowError::Refused(refusal) => refusal,
        OwnWindowError::Store(error) => return error.into(),
        OwnWindowError::Invalid(errors) => return Problem::invalid(errors),
        OwnWindowError::Failed(cause) => return Problem::internal(&cause),
    };
    let detail = refusal.to_string();
    match refusal {
        OwnRefusal::WindowConflict => Problem::new(Code::WindowConflict, detail),
        OwnRefusal::WindowInProgress { .. } => Problem::new(Code::WindowInProgress, detail),
        OwnRefusal::WindowLost => {
            let detail = "another node took the window over: ask again for its answer";
            Problem::new(Code::WindowInProgress, detail)
        }
        OwnRefusal::Quarantined { until_ms } => {
            super::requests::quarantined(app, region, until_ms).await
        }
        OwnRefusal::Paused => Problem::new(Code::Paused, "ops paused the intake of this region"),
        OwnRefusal::RegionFull => Problem::new(Code::RegionFull, detail),
        OwnRefusal::TooLarge => Problem::too_large(detail),
        // this node numbers its batches itself: it never comes to that
        OwnRefusal::OtherPairs => Problem::internal(&detail),
    }
}

/// Reports of the region's sealed windows, oldest first.
#[utoipa::path(
    get, path = "/v1/regions/{region}/windows", tag = "windows",
    params(
        ("region" = String, Path, description = "The region"),
        ("after" = Option<u64>, Query, description = "Only those after this window"),
        ("limit" = Option<u32>, Query, description = "Most entries, by default 100", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The reports", body = WindowsPage)),
)]
pub(crate) async fn list_windows(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    mut params: Params,
) -> Result<Answer<WindowsPage>, Problem> {
    let after = params.text("after", WindowSeq::read).unwrap_or_default();
    let limit = params.limit();
    params.close()?;
    let _permit = app.admission().enter(&region, Work::Reads).await?;
    let reports = app.store().reports(&region, after, limit).await?;
    let next = reports.last().map_or(after, |report| report.window_seq);
    Ok(Answer(WindowsPage {
        windows: reports
            .iter()
            .map(|report| ReportBody::new(&region, report))
            .collect(),
        next: next.get(),
    }))
}

/// The report of one window, with its decisions while they are kept.
#[utoipa::path(
    get, path = "/v1/regions/{region}/windows/{window_seq}", tag = "windows",
    params(
        ("region" = String, Path, description = "The region"),
        ("window_seq" = u64, Path, description = "The window", maximum = 9_007_199_254_740_991u64),
    ),
    responses((status = 200, description = "The report", body = ReportBody)),
)]
pub(crate) async fn get_window(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    PathId(window_seq): PathId<WindowSeq>,
    _: NoParams,
) -> Result<Answer<ReportBody>, Problem> {
    let _permit = app.admission().enter(&region, Work::Reads).await?;
    let Some(view) = app.store().report(&region, window_seq).await? else {
        let detail = format!("window {window_seq} is not sealed, or its report is forgotten");
        return Err(Problem::new(Code::UnknownWindow, detail));
    };
    Ok(Answer(ReportBody::with_decisions(&region, &view)))
}
