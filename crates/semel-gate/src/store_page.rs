//! The page without a gate: of a store that a library or the Python package uses.

use crate::page::{PageState, screens};
use crate::settings::Secret;
use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use semel::store::Letters;
use semel_ui::{Access, AccessSettings, mount};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// What the page of a store is made of.
#[derive(Clone, Debug)]
pub struct StorePage {
    /// What is looked at, in words: the store without its password.
    pub place: String,
    /// The namespace of those who use the store, through which parts are searched for.
    pub namespace: String,
    /// Names that the page has besides its address, at a proxy for instance.
    pub hosts: Vec<String>,
    /// What those show who may act. Without it, on loopback, everybody may.
    pub act_token: Option<Secret>,
    /// What those show who may only look.
    pub view_token: Option<Secret>,
    /// Whether the bodies of answers and letters are shown.
    pub show_bodies: bool,
}

// === impl StorePage ===

impl StorePage {
    /// Serves the page of this store until `stop` resolves.
    ///
    /// # Errors
    /// Those of the socket.
    pub async fn serve(
        self,
        store: Arc<dyn Letters>,
        socket: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let router = self.router(store, socket.local_addr()?);
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        axum::serve(socket, service)
            .with_graceful_shutdown(stop)
            .await
    }

    fn router(self, store: Arc<dyn Letters>, listens: SocketAddr) -> Router {
        let text = |secret: &'_ Option<Secret>| secret.as_ref().map(|it| it.0.clone());
        let access = Access::new(AccessSettings {
            place: &self.place,
            listens,
            hosts: &self.hosts,
            act_token: text(&self.act_token).as_deref(),
            view_token: text(&self.view_token).as_deref(),
        });
        let state = PageState::of_store(store, self);
        mount(Arc::new(access), screens(Arc::new(state)))
            .route("/", get(async || Redirect::to("ui/")))
    }
}
