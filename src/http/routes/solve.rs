//! `POST /v1/solve`: a window solved for its own sake. No store, no claims.

use axum::{Json as Answer, extract::State};

use crate::http::{
    body::{JsonBytes, WINDOW, off_the_workers},
    fields::flag,
    model::solve::{SolveAnswer, SolveBody},
    paths::Params,
    problem::Problem,
    solving,
    state::AppState,
};

/// Solves a window: requests and drivers in, assignments of least cost out. Nothing is claimed.
#[utoipa::path(
    post, path = "/v1/solve", tag = "solve",
    params(("certificate" = Option<bool>, Query, description = "Answer with the prices that prove the cost")),
    request_body = SolveBody,
    responses((status = 200, description = "Solved", body = SolveAnswer)),
)]
pub(crate) async fn solve(
    State(app): State<AppState>,
    mut params: Params,
    JsonBytes(body): JsonBytes<WINDOW>,
) -> Result<Answer<SolveAnswer>, Problem> {
    app.lifecycle().takes_work()?;
    let certificate = params.value("certificate", flag).unwrap_or_default();
    params.close()?;
    let slot = app.solves().enter().await?;
    let answer = off_the_workers(move || {
        let answer = solving::solve(&body, certificate);
        drop(slot);
        answer
    });
    answer.await?.map(Answer)
}
