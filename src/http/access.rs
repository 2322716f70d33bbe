//! The guard before every route that is not open: who calls, may it do this, and here.
//!
//! What a method needs follows from the method alone: `GET` is for every role, `PATCH` for `ops`,
//! the rest for `dispatch`. So a new route cannot be left open by mistake.

use axum::{
    RequestExt as _,
    extract::{RawPathParams, Request, State},
    http::{HeaderMap, HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{
    problem::{Code, Problem},
    state::AppState,
    tokens::{Caller, Role},
};

/// Lets a call through to its route, with its [`Caller`] among the extensions.
pub(crate) async fn guard(
    State(app): State<AppState>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = match authorize(&app, &mut request).await {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(),
    };
    let Some(_slot) = app.admission().caller(&caller) else {
        let detail = format!("{} has as many calls under way as it may", caller.name);
        return Problem::new(Code::Quota, detail).into_response();
    };
    request.extensions_mut().insert(caller);
    next.run(request).await
}

async fn authorize(app: &AppState, request: &mut Request) -> Result<Caller, Problem> {
    let caller = identify(app, request.headers())?;
    if !may(caller.role, request.method()) {
        let detail = format!("{} is not a token for {}", caller.name, request.method());
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let params = request.extract_parts::<RawPathParams>().await.ok();
    let region = params.iter().flatten().find(|(name, _)| *name == "region");
    if let Some((_, region)) = region
        && !caller.sees(region)
    {
        let detail = format!("{} is not a token of this region", caller.name);
        return Err(Problem::new(Code::Forbidden, detail));
    }
    Ok(caller)
}

fn identify(app: &AppState, headers: &HeaderMap) -> Result<Caller, Problem> {
    let Some(tokens) = app.tokens() else {
        return Ok(Caller::local());
    };
    let given = headers
        .get(header::AUTHORIZATION)
        .map(HeaderValue::as_bytes);
    let token = given.and_then(|value| {
        let (scheme, token) = value.split_at_checked(7)?;
        scheme
            .eq_ignore_ascii_case(b"bearer ")
            .then(|| token.trim_ascii())
    });
    let token = token
        .ok_or_else(|| Problem::new(Code::Unauthenticated, "send Authorization: Bearer <token>"))?;
    tokens
        .identify(token)
        .ok_or_else(|| Problem::new(Code::Unauthenticated, "the token is not known"))
}

fn may(role: Option<Role>, method: &Method) -> bool {
    let Some(role) = role else {
        return true;
    };
    if method == Method::GET || method == Method::HEAD {
        return true;
    }
    if method == Method::PATCH {
        role == Role::Ops
    } else {
        role == Role::Dispatch
    }
}
