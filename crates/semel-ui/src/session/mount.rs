//! Putting screens, assets and sign-in below one path.

use super::{Access, guard, sign_in};
use crate::assets::assets;
use crate::components::refused;
use crate::frame::{page_with, see};
use crate::{Base, Visitor};
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use http::{StatusCode, Uri};
use std::net::SocketAddr;
use std::sync::Arc;
use tower::ServiceExt;

/// Where pages are, beside whatever else an address serves.
const ROOT: &str = "/ui";

/// Serves these screens at `/ui/`, with everything that surrounds them. They have paths below it (`/`, `/letters`), and
/// find in every request who asks: `Extension<Visitor>`. An act comes to them only if it may be done.
pub fn mount<S: Clone + Send + Sync + 'static>(access: Arc<Access>, screens: Router) -> Router<S> {
    let own = Router::new()
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .with_state(Arc::clone(&access))
        .merge(assets());
    let unknown = any(unknown).with_state(Arc::clone(&access));
    let inside = screens
        .merge(own)
        .fallback_service(unknown)
        .layer(from_fn_with_state(access, guard::guard));
    let enter = move |request: Request| {
        let inside = inside.clone();
        async move { inside.oneshot(below(request)).await }
    };
    Router::new()
        // From `…/ui` the way to the root is one level down, whatever stands before it.
        .route(ROOT, get(async || see("ui/")))
        .route(&format!("{ROOT}/"), any(enter.clone()))
        .route(&format!("{ROOT}/{{*screen}}"), any(enter))
}

/// The same request, with its path below the root. Of what was found out before only who asks remains: what the outer
/// router read from the path would count among the parameters of a screen.
fn below(request: Request) -> Request {
    let (mut parts, body) = request.into_parts();
    let peer = parts.extensions.remove::<ConnectInfo<SocketAddr>>();
    parts.extensions.clear();
    if let Some(peer) = peer {
        parts.extensions.insert(peer);
    }
    let mut uri = parts.uri.clone().into_parts();
    let path = parts.uri.path_and_query().map_or("/", |it| it.as_str());
    uri.path_and_query = path.strip_prefix(ROOT).unwrap_or(path).parse().ok();
    parts.uri = Uri::from_parts(uri).unwrap_or_default();
    Request::from_parts(parts, body)
}

async fn unknown(
    State(access): State<Arc<Access>>,
    visitor: Option<Extension<Visitor>>,
) -> Response {
    let visitor = visitor.map_or_else(|| guard::nobody(Base::default()), |Extension(it)| it);
    let what = "Nothing is here";
    let main = refused(
        what,
        "The address may be of another version: begin at the root.",
        &visitor.base.to(""),
    );
    page_with(
        StatusCode::NOT_FOUND,
        &guard::outside(&access, what, &visitor),
        &main,
    )
}
