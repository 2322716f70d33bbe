//! `POST …/reconcile`: after data loss the dispatch tier tells what is true.

use axum::{Json as Answer, extract::State};

use crate::{
    domain::RegionId,
    http::{
        admission::Work,
        body::{BATCH, Json},
        model::reconcile::{ReconcileBody, ReconciledAnswer, telling},
        paths::{NoParams, PathId},
        problem::{Code, Problem},
        state::AppState,
    },
    protocol::ReconcileRefusal,
    telemetry,
};

/// Restores trips under way and pending requests after data loss. Restored claims get new fences;
/// told twice is told once.
#[utoipa::path(
    post, path = "/v1/regions/{region}/reconcile", tag = "claims",
    params(("region" = String, Path, description = "The region")),
    request_body = ReconcileBody,
    responses((status = 200, description = "Told", body = ReconciledAnswer)),
)]
pub(crate) async fn reconcile(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    _: NoParams,
    Json(body): Json<BATCH>,
) -> Result<Answer<ReconciledAnswer>, Problem> {
    let (telling, places) = telling(body)?.split();
    let permit = app.admission().enter(&region, Work::Claims).await?;
    let task = app.clone();
    app.detached(permit, async move {
        let answer = task.store().reconcile(&region, telling).await?;
        let answer = answer.map_err(|refusal| {
            let detail = refusal.to_string();
            let problem = match refusal {
                ReconcileRefusal::GenerationChanged { generation } => {
                    Problem::new(Code::GenerationChanged, detail)
                        .with("generation", generation.get())
                }
                ReconcileRefusal::TooLarge => Problem::too_large(detail),
            };
            telemetry::reject(&region, problem.code().as_str());
            problem
        })?;
        Ok(Answer(ReconciledAnswer::new(answer, places)))
    })
    .await
}
