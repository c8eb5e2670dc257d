//! A gate on an embedded store, and somebody who looks at its page.

use crate::support::prelude::*;
use crate::support::settings;
use semel::Key;
use semel::store::{Letters, Store};
use semel_embedded::{EmbeddedSettings, EmbeddedStore};
use semel_gate::Server;
use tempfile::TempDir;
use tokio::sync::oneshot;

/// See the module.
pub(super) struct PageBed {
    pub(super) gate: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) handler: Handler,
    pub(super) store: Arc<EmbeddedStore>,
    settings: Settings,
    _stop: oneshot::Sender<()>,
    _served: JoinHandle<semel_gate::Unfinished>,
    _directory: Arc<TempDir>,
}

// === impl PageBed ===

impl PageBed {
    /// Its route `work` names tasks by `/order_id`, parks after one failure, fails for good with 422, and shows bodies.
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(super) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let opened = EmbeddedStore::open(directory.path(), EmbeddedSettings::default());
        let store = Arc::new(opened.unwrap());
        let handler = Handler::start().await;
        let mut settings = settings(handler.address);
        settings.name = "gate-7".into();
        let route = &mut settings.routes[0];
        keyed_by(route, "/order_id");
        route.max_attempts = 1;
        route.final_statuses = vec![422..=422];
        route.show_bodies = true;
        change(&mut settings);
        Self::begun(settings, store, handler, Arc::new(directory)).await
    }

    /// Another gate, with the same settings on the same store.
    pub(super) async fn other_gate(&self) -> Self {
        self.other_gate_with(|_| {}).await
    }

    /// The same with other settings.
    pub(super) async fn other_gate_with(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.settings.clone();
        change(&mut settings);
        let (store, directory) = (Arc::clone(&self.store), Arc::clone(&self._directory));
        let handler = Handler::start().await;
        Self::begun(settings, store, handler, directory).await
    }

    async fn begun(
        settings: Settings,
        store: Arc<EmbeddedStore>,
        handler: Handler,
        directory: Arc<TempDir>,
    ) -> Self {
        let kept: Arc<dyn Letters> = Arc::<EmbeddedStore>::clone(&store);
        let bound = Server::bind(settings.clone(), kept).await.unwrap();
        let (gate, admin) = (bound.address().unwrap(), bound.admin_address().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(bound.serve(async move { drop(stopped.await) }));
        Self {
            gate,
            admin,
            handler,
            store,
            settings,
            _stop: stop,
            _served: served,
            _directory: directory,
        }
    }

    /// Delivers the order as a task of this name.
    pub(super) async fn task(&self, name: &str, order: &str) -> Answer {
        let payload = json!({"order_id": order, "cents": 5}).to_string();
        self.deliver(name, &payload).await
    }

    pub(super) async fn deliver(&self, name: &str, payload: &str) -> Answer {
        let ask = Sender::Task.sends(name, payload);
        let ask = ask.header("Content-Type", "application/json");
        ask.send(self.gate).await
    }

    /// A task whose handler answers so.
    pub(super) async fn task_heard(&self, name: &str, order: &str, status: u16) -> Answer {
        self.handler.says(status);
        self.task(name, order).await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        Ask::get(path).send(self.admin).await
    }

    /// A screen, as text.
    pub(super) async fn look(&self, path: &str) -> String {
        let said = self.get(path).await;
        assert_eq!(said.status, 200, "{path}: {said:?}");
        said.text().to_owned()
    }

    /// A screen once it has this; numbers are counted in the background.
    pub(super) async fn sees(&self, path: &str, what: &str) -> String {
        let has = async || self.look(path).await.contains(what);
        until(&format!("{what:?} on {path}"), has).await;
        self.look(path).await
    }

    /// Sends a form of the page, with what its page has hidden in it.
    pub(super) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let page = match path.rsplit_once('/') {
            Some((record, _)) if path.starts_with("/ui/records/") => self.look(record).await,
            Some(_) | None => self.look("/ui/routes/work").await,
        };
        let hidden =
            |name: &str| hidden(&page, name).filter(|_| fields.iter().all(|it| it.0 != name));
        let csrf = hidden("csrf").unwrap();
        let mut form = format!("csrf={csrf}");
        let seen = ["seen", "fence"].map(|name| hidden(name).map(|value| (name, value)));
        for (name, value) in fields.iter().copied().chain(seen.into_iter().flatten()) {
            form.push_str(&format!("&{name}={}", encoded(value)));
        }
        Ask::post(path)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Origin", &format!("http://{}", self.admin))
            .header("Sec-Fetch-Site", "same-origin")
            .body(form)
            .send(self.admin)
            .await
    }

    /// An act that is done, and leads on; where to, below the root.
    pub(super) async fn acts(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let said = self.post(path, fields).await;
        assert_eq!(said.status, 303, "{path}: {said:?}");
        let location = said.header("location").unwrap();
        format!(
            "/ui/{}",
            location.trim_start_matches("../").trim_start_matches("./")
        )
    }

    /// Where a search leads to, if it leads straight there.
    pub(super) async fn search(&self, text: &str) -> Option<String> {
        let said = self.get(&format!("/ui/search?q={}", encoded(text))).await;
        said.header("location").map(str::to_owned)
    }

    pub(super) async fn keys(&self) -> Vec<Key> {
        let page = Store::list(self.store.as_ref(), None, None, 1000).await;
        page.unwrap()
            .items
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    }

    pub(super) async fn key(&self) -> Key {
        let keys = self.keys().await;
        assert_eq!(keys.len(), 1, "{keys:?}");
        keys[0]
    }

    pub(super) async fn letters(&self) -> Vec<semel::letter::LetterHead> {
        let page = Letters::list(self.store.as_ref(), None, 1000).await;
        page.unwrap().items
    }

    pub(super) async fn state(&self, key: &Key) -> Option<State> {
        let record = self.store.look(key).await.unwrap();
        record.map(|record| record.state)
    }
}

/// A value as a form has it.
/// The value of a hidden field.
pub(super) fn hidden<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!(r#"name="{name}" value=""#))?;
    rest.split('"').next()
}

pub(super) fn encoded(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let written = value.bytes().map(|byte| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    written.collect()
}
