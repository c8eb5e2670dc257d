//! Requests that axum routes, on the gate's own connections.

use crate::listener::{Peer, Serve};
use crate::pace;
use crate::settings::Limits;
use crate::upstream::Reply;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Request;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;

/// Routes, and how slowly their bodies may come.
#[derive(Clone, Debug)]
pub(crate) struct RouterService {
    service: TowerToHyperService<Router>,
    limits: Arc<Limits>,
}

// === impl RouterService ===

impl RouterService {
    pub(crate) fn new(router: Router, limits: &Limits) -> Self {
        Self {
            service: TowerToHyperService::new(router),
            limits: Arc::new(limits.clone()),
        }
    }
}

impl Serve for RouterService {
    const HTTP2: bool = false;

    async fn serve(self, peer: Arc<Peer>, request: Request<Incoming>) -> Reply {
        let mut request = request.map(|body| Body::new(pace::whole(body, &self.limits)));
        request.extensions_mut().insert(ConnectInfo(peer.address));
        match self.service.call(request).await {
            Ok(response) => response.map(|body| UnsyncBoxBody::new(body.map_err(Into::into))),
            Err(never) => match never {},
        }
    }
}
