//! Everything a broker serves, put together.

use super::StartError;
use crate::admin::{self, Admin, Guard, Provisioner, Service};
use crate::context::Context;
use crate::declared::{Declared, NotApplied};
use crate::faults::Faults;
use crate::issuer;
use crate::methods;
use crate::pubsub::PubSub;
use crate::rest::{self, BufferCall};
use crate::storage::{Storage, StorageError};
use crate::tasks::Tasks;
use crate::ui::{self, Ask, Page};
use crate::{Keep, Settings};
use async_trait::async_trait;
use axum::Router;
use semel_ui::{Access, AccessSettings};
use std::net::SocketAddr;
use std::sync::Arc;

/// Both services and what they stand on.
#[derive(Debug)]
pub(super) struct Services {
    context: Arc<Context>,
    tasks: Arc<Tasks>,
    pubsub: Arc<PubSub>,
    declared: Declared,
    guard: Guard,
}

// === impl Services ===

impl Services {
    /// Opens what was kept; deliveries begin.
    pub(super) fn open(settings: &Settings, address: SocketAddr) -> Result<Self, StartError> {
        let storage = match &settings.keep {
            Keep::Directory(directory) => Storage::open(directory)?,
            Keep::Memory => Storage::in_memory(),
        };
        let faults = Faults::new(settings.seed, settings.faults.clone());
        let issuer = format!("http://{address}");
        let context = Context::open(storage, issuer, faults, settings.history_max)?;
        let context = Arc::new(context);
        let tasks = Tasks::open(
            Arc::clone(&context),
            settings.functions_url.clone(),
            settings.app_engine_url.clone(),
        )?;
        let pubsub = PubSub::open(Arc::clone(&context))?;
        let loopback_only = address.ip().to_canonical().is_loopback();
        Ok(Self {
            guard: Guard::new(settings.admin_token.as_deref(), loopback_only),
            context,
            tasks: Arc::new(tasks),
            pubsub: Arc::new(pubsub),
            declared: settings.declared.clone(),
        })
    }

    /// Makes what is declared so.
    pub(super) async fn declare(&self) -> Result<(), NotApplied> {
        self.declared.apply(&self.tasks, &self.pubsub).await
    }

    /// gRPC by its paths, the admin API and the issuer's keys by theirs, REST for all others.
    fn programs(self) -> Router {
        let mut unary = Vec::new();
        let mut grpc = Router::new();
        for methods in [self.tasks.methods(), self.tasks.locations()] {
            unary.extend(methods.unary);
            grpc = grpc.merge(methods.grpc);
        }
        let beta = self.tasks.beta_methods();
        unary.extend(beta.unary);
        grpc = grpc.merge(beta.grpc);
        for methods in self.pubsub.methods() {
            unary.extend(methods.unary);
            grpc = grpc.merge(methods.grpc);
        }
        rest::router(unary, self.buffer(), &self.context.refusals)
            .merge(grpc)
            .merge(issuer::routes(Arc::clone(&self.context)))
            .merge(admin::routes(self.admin()))
    }

    /// What programs ask, and the page, which asks the same on behalf of people.
    pub(super) fn router(self, settings: &Settings, address: SocketAddr) -> Router {
        let place = format!("broker {address}");
        let access = Access::new(AccessSettings {
            place: &place,
            listens: address,
            hosts: &settings.hosts_of_page(),
            act_token: settings.admin_token.as_deref(),
            view_token: settings.admin_view_token.as_deref(),
        });
        let (context, tasks) = (Arc::clone(&self.context), Arc::clone(&self.tasks));
        let registry = self.pubsub.registry();
        let programs = self.programs();
        let page = Page {
            ask: Ask::new(programs.clone(), settings.admin_token.clone()),
            place,
            context,
            tasks,
            registry,
        };
        programs.merge(semel_ui::mount(Arc::new(access), ui::screens(page)))
    }

    fn buffer(&self) -> BufferCall {
        let tasks = Arc::clone(&self.tasks);
        Box::new(move |buffered| Box::pin(methods::finish(Arc::clone(&tasks).buffer(buffered))))
    }

    fn admin(self) -> Admin {
        let (context, guard) = (Arc::clone(&self.context), self.guard.clone());
        let services: Vec<Arc<dyn Service>> = vec![self.tasks.clone(), self.pubsub.clone()];
        Admin::new(context, services, Arc::new(self), guard)
    }
}

#[async_trait]
impl Provisioner for Services {
    async fn provision(&self) -> Result<(), String> {
        let made = self.declared.apply(&self.tasks, &self.pubsub).await;
        made.map_err(|error| error.to_string())
    }
}

impl From<StorageError> for StartError {
    fn from(error: StorageError) -> Self {
        Self::Keep(error.to_string())
    }
}

impl From<NotApplied> for StartError {
    fn from(error: NotApplied) -> Self {
        Self::Declared(error.to_string())
    }
}
