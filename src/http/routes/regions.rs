//! Regions: the list, one region, tuning it.

use axum::{
    Extension, Json as Answer,
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use serde_json::{Map, Value};

use crate::{
    config::{Patched, RegionConfig},
    domain::{ConfigVersion, RegionId},
    http::{
        admission::Work,
        body::{Json, SMALL},
        fields::flag,
        model::regions::{
            ClampedBody, ConfigPatch, PatchedAnswer, RegionAnswer, RegionSummary, RegionsAnswer,
            changes, with_defaults,
        },
        paths::{NoParams, Params, PathId},
        problem::{Code, Problem},
        state::AppState,
        tokens::Caller,
    },
    protocol::{Configure, ConfigureRefusal, Configured},
    store::StoreError,
};

/// Patches that meet each other are merged again this often.
const MAX_TRIES: usize = 8;

/// The regions that the token may see.
#[utoipa::path(
    get, path = "/v1/regions", tag = "regions",
    responses((status = 200, description = "The regions", body = RegionsAnswer)),
)]
pub(crate) async fn list_regions(
    State(app): State<AppState>,
    Extension(caller): Extension<Caller>,
    _: NoParams,
) -> Result<Answer<RegionsAnswer>, Problem> {
    let regions = app.store().regions().await?;
    let seen = regions.iter().filter(|region| caller.sees(region.as_str()));
    let summary = |region: &RegionId| RegionSummary {
        region: region.to_string(),
        level: app.runtime().level(region),
    };
    Ok(Answer(RegionsAnswer {
        regions: seen.map(summary).collect(),
    }))
}

/// A region: its configuration, leader, level, load and last window.
#[utoipa::path(
    get, path = "/v1/regions/{region}", tag = "regions",
    params(("region" = String, Path, description = "The region")),
    responses((
        status = 200, description = "The region", body = RegionAnswer,
        headers(("ETag" = String, description = "The version of the configuration, for If-Match"))
    )),
)]
pub(crate) async fn get_region(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    _: NoParams,
) -> Result<Response, Problem> {
    let _permit = app.admission().enter(&region, Work::Reads).await?;
    let view = app.store().overview(&region).await?;
    let config = read_document(&view.document)?;
    let level = app.runtime().level(&region);
    let answer = RegionAnswer::new(&region, &view, config, level);
    Ok(tagged(view.config_version, Answer(answer)))
}

/// Tunes a live region by a JSON merge patch: `null` restores a default, a value outside its rails
/// is moved to the nearest and listed. It takes effect on the next window.
#[utoipa::path(
    patch, path = "/v1/regions/{region}/config", tag = "regions",
    params(
        ("region" = String, Path, description = "The region"),
        ("dry_run" = Option<bool>, Query, description = "Change nothing; answer what would be"),
        ("If-Match" = Option<String>, Header, description = "The version that the patch is made for"),
    ),
    request_body(content = ConfigPatch, content_type = "application/json", description = "Settings by name"),
    responses((
        status = 200, description = "Tuned", body = PatchedAnswer,
        headers(("ETag" = String, description = "The version of the configuration"))
    )),
)]
pub(crate) async fn patch_config(
    State(app): State<AppState>,
    Extension(caller): Extension<Caller>,
    PathId(region): PathId<RegionId>,
    mut params: Params,
    headers: HeaderMap,
    Json(body): Json<SMALL>,
) -> Result<Response, Problem> {
    let dry_run = params.value("dry_run", flag).unwrap_or_default();
    params.close()?;
    let expected = if_match(&headers)?;
    let Value::Object(patch) = body else {
        let detail = "must be an object of settings";
        return Err(Problem::invalid_field(
            "",
            "wrong_type",
            Value::Null,
            detail,
        ));
    };
    let patch = with_defaults(patch, app.config().region(&region));
    let permit = app.admission().enter(&region, Work::Claims).await?;
    let tuning = Tuning {
        app: app.clone(),
        region,
        patch,
        expected,
        actor: caller,
        dry_run,
    };
    let (version, answer) = app.detached(permit, tuning.run()).await?;
    Ok(tagged(version, Answer(answer)))
}

/// One patch on its way.
struct Tuning {
    app: AppState,
    region: RegionId,
    patch: Map<String, Value>,
    expected: Option<Expected>,
    actor: Caller,
    dry_run: bool,
}

/// What `If-Match` asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The region exists: `*`.
    Any,
    /// It has this version.
    Version(ConfigVersion),
}

impl Tuning {
    async fn run(self) -> Result<(ConfigVersion, PatchedAnswer), Problem> {
        for _ in 0..MAX_TRIES {
            let (present, before) = self.present().await?;
            self.check(present)?;
            let Patched { config, clamped } =
                before.patched(&self.patch).map_err(Problem::invalid)?;
            let mut answer = PatchedAnswer {
                region: self.region.to_string(),
                changes: changes(&before, &config),
                config_version: present.unwrap_or_default().get(),
                clamped: clamped.into_iter().map(ClampedBody::from).collect(),
                dry_run: self.dry_run,
                config,
            };
            if self.dry_run {
                return Ok((present.unwrap_or_default(), answer));
            }
            match self.configure(present, &answer).await? {
                Ok(Configured { config_version }) => {
                    answer.config_version = config_version.get();
                    return Ok((config_version, answer));
                }
                // somebody was faster: merge into what holds now
                Err(ConfigureRefusal::VersionMismatch { .. }) => {}
                Err(refusal @ ConfigureRefusal::Invalid(_)) => {
                    return Err(Problem::new(Code::Invalid, refusal.to_string()));
                }
                Err(ConfigureRefusal::TooLarge) => {
                    return Err(Problem::too_large("the configuration is too long"));
                }
            }
        }
        Err(Problem::new(
            Code::VersionMismatch,
            "the configuration changes all the time",
        ))
    }

    /// The present version and configuration; no version before the region came to be.
    async fn present(&self) -> Result<(Option<ConfigVersion>, RegionConfig), Problem> {
        match self.app.store().overview(&self.region).await {
            Ok(view) => Ok((Some(view.config_version), read_document(&view.document)?)),
            Err(StoreError::UnknownRegion) => {
                Ok((None, self.app.config().region(&self.region).clone()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn check(&self, present: Option<ConfigVersion>) -> Result<(), Problem> {
        let holds = match self.expected {
            None => true,
            Some(Expected::Any) => present.is_some(),
            Some(Expected::Version(version)) => present == Some(version),
        };
        if holds {
            return Ok(());
        }
        let present = present.unwrap_or_default();
        let detail = format!("the present version is {present}: read it, and patch again");
        Err(Problem::new(Code::VersionMismatch, detail).with("config_version", present.get()))
    }

    async fn configure(
        &self,
        expected: Option<ConfigVersion>,
        answer: &PatchedAnswer,
    ) -> Result<Result<Configured, ConfigureRefusal>, Problem> {
        let changes = serde_json::to_string(&answer.changes);
        let configure = Configure {
            rules: answer.config.rules(),
            document: answer.config.document(),
            expected,
            actor: self.actor.name.clone(),
            changes: changes.map_err(|error| Problem::internal(&error))?.into(),
        };
        Ok(self.app.store().configure(&self.region, configure).await?)
    }
}

fn read_document(document: &str) -> Result<RegionConfig, Problem> {
    RegionConfig::from_document(document).map_err(|error| Problem::internal(&error))
}

fn if_match(headers: &HeaderMap) -> Result<Option<Expected>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(Some(Expected::Any));
    }
    let number = text.trim_start_matches("W/").trim_matches('"');
    let version = number
        .parse()
        .ok()
        .and_then(|number: u64| ConfigVersion::try_from(number).ok());
    let Some(version) = version else {
        let detail = "must be one version, as the ETag tells it";
        return Err(Problem::invalid_field(
            "If-Match",
            "bad_value",
            text.into(),
            detail,
        ));
    };
    Ok(Some(Expected::Version(version)))
}

fn tagged(version: ConfigVersion, answer: impl axum::response::IntoResponse) -> Response {
    let mut response = answer.into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
