//! A function behind HTTP: read, named and answered by the gate's own code, run by Python.
#![allow(
    clippy::needless_pass_by_value,
    reason = "what Python hands over is a value"
)]

use crate::error;
use crate::home::Home;
use crate::letters::{self, Given};
use crate::run::Run;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use semel::Outcome;
use semel::outcome::HEADERS_KEPT;
use semel_gate::delivery::Transport;
use semel_gate::disposition::{Disposition, NotKept, Undelivered};
use semel_gate::label::LabelOf;
use semel_gate::letters::StoredDelivery;
use semel_gate::naming::{self, Identity, NamedRequest};
use semel_gate::reply::meaning::meaning;
use semel_gate::reply::{self, HandlerAnswer, ReplyBody};
use semel_gate::settings::{Route as RouteSettings, Source};
use std::convert::Infallible;

/// Headers as Python has them.
type Headers = Vec<(String, String)>;

/// A route, as `semel.toml` describes one.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Route {
    namespace: String,
    settings: RouteSettings,
}

/// One request to a function: it has a run, or its reply is known already.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Delivery {
    home: Py<Home>,
    route: Py<Route>,
    request: Request<Bytes>,
    source: Source,
    transport: Transport,
    identity: Option<Identity>,
    /// Under which the function is called.
    #[pyo3(get)]
    run: Option<Py<Run>>,
    /// What its sender hears, when the function is not called.
    #[pyo3(get)]
    reply: Option<Py<Reply>>,
}

/// What a sender hears.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Reply {
    #[pyo3(get)]
    status: u16,
    #[pyo3(get)]
    headers: Headers,
    /// The word for it in logs and metrics.
    #[pyo3(get)]
    word: &'static str,
    body: Bytes,
}

// === impl Route ===

#[pymethods]
impl Route {
    /// From the text of a `semel.toml` with one route.
    #[new]
    fn new(py: Python<'_>, namespace: String, text: &str) -> PyResult<Self> {
        let settings = semel_cli::route_of(text);
        let settings = settings.map_err(|mistakes| error::of_setting(py, &mistakes))?;
        Ok(Self {
            namespace,
            settings,
        })
    }
}

// === impl Delivery ===

#[pymethods]
impl Delivery {
    /// Reads a request, and asks to run it.
    #[new]
    fn new(
        py: Python<'_>,
        home: Py<Home>,
        route: Py<Route>,
        method: &str,
        path: &str,
        headers: Headers,
        body: &[u8],
    ) -> PyResult<Self> {
        let request = request(method, path, &headers, body)?;
        let settings = &route.get().settings;
        let named = NamedRequest::read(&route.get().namespace, settings, &request, &mut |_| true);
        let mut delivery = Self {
            home,
            request,
            source: named.source,
            transport: named.transport,
            identity: named.identity.as_ref().ok().copied(),
            run: None,
            reply: None,
            route,
        };
        let disposition = match named.identity {
            Err(error) => {
                let on_invalid = delivery.route.get().settings.on_invalid;
                Disposition::of_unnamed(delivery.source, on_invalid, error)
            }
            Ok(identity) => {
                let settings = &delivery.route.get().settings;
                let by = delivery.home.get().by();
                let label = LabelOf {
                    route: &settings.name,
                    source: delivery.source.word(),
                    gate: by,
                    id: delivery.transport.id(),
                    from: delivery.transport.from(),
                    description: named.description.as_ref(),
                    traceparent: delivery.transport.traceparent.as_deref(),
                };
                let work = naming::work(settings, delivery.source, identity);
                let work = work.label(label.encode()).by(by.to_owned());
                match delivery.home.get().claim(py, work)? {
                    Ok(run) => {
                        delivery.run = Some(Py::new(py, run)?);
                        return Ok(delivery);
                    }
                    Err(ended) => Disposition::of_run(delivery.source, ended),
                }
            }
        };
        let answer = HandlerAnswer::default();
        delivery.reply = Some(Py::new(py, delivery.told(py, disposition, answer)?)?);
        Ok(delivery)
    }

    /// Whether its sender is a broker, which delivers again whatever is not a success.
    #[getter]
    fn is_broker(&self) -> bool {
        self.source.is_broker()
    }

    /// Says what the function answered; the reply.
    fn answered(
        &self,
        py: Python<'_>,
        status: u16,
        headers: Headers,
        body: &[u8],
    ) -> PyResult<Reply> {
        let status = StatusCode::from_u16(status)
            .map_err(|_| PyValueError::new_err(format!("{status} is not a status of HTTP")))?;
        let meaning = meaning(&self.route.get().settings, self.source, status);
        let mut outcome = Outcome::new(status.as_u16(), body.to_vec());
        for (name, value) in &headers {
            if HEADERS_KEPT.contains(&name.to_ascii_lowercase().as_str()) {
                outcome = outcome.with_header(name, value);
            }
        }
        let limit = self.route.get().settings.answer_bytes_max;
        self.end(
            py,
            meaning.of(outcome.bounded(limit)),
            Some(header_map(&headers)?),
        )
    }

    /// Says that the function raised: whether it took effect is not known.
    fn raised(&self, py: Python<'_>, in_doubt: bool) -> PyResult<Reply> {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        let said = if in_doubt {
            Err(semel::Failure::in_doubt("the function was cut short"))
        } else {
            let meaning = meaning(&self.route.get().settings, self.source, status);
            meaning.of(Outcome::new(status.as_u16(), "the function raised"))
        };
        self.end(py, said, None)
    }
}

impl Delivery {
    fn end(
        &self,
        py: Python<'_>,
        said: Result<Outcome, semel::Failure>,
        headers: Option<HeaderMap>,
    ) -> PyResult<Reply> {
        let Some(run) = &self.run else {
            return Err(PyValueError::new_err(
                "this request has been answered already",
            ));
        };
        let ended = run.get().finish(py, said)?;
        let disposition = Disposition::of_run(self.source, ended);
        let answer = HandlerAnswer {
            headers,
            rest: None,
        };
        self.told(py, disposition, answer)
    }

    /// Keeps the letter that a disposition asks for, and makes the reply.
    fn told(
        &self,
        py: Python<'_>,
        disposition: Disposition,
        answer: HandlerAnswer<Infallible>,
    ) -> PyResult<Reply> {
        let disposition = if let Disposition::Letter(why) = disposition {
            self.keep(py, why)?
        } else {
            disposition
        };
        let word = disposition.word();
        let reply = reply::reply(self.source, &disposition, answer);
        let headers = reply.headers().iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value)
        });
        let (status, headers) = (reply.status().as_u16(), headers.collect());
        let body = match reply.into_body() {
            ReplyBody::Whole(body) => body,
            ReplyBody::Streamed(_, rest) => match rest {},
        };
        Ok(Reply {
            status,
            headers,
            word,
            body,
        })
    }

    /// A delivery that is acknowledged without success is kept first; otherwise its sender must keep it.
    fn keep(&self, py: Python<'_>, why: Undelivered) -> PyResult<Disposition> {
        let settings = &self.route.get().settings;
        let delivery = StoredDelivery::of(&settings.name, &self.request, why.why()).encode();
        let given = Given {
            route: settings.name.clone(),
            reason: why.reason(),
            identity: self.identity.map(|it| (it.key, it.fingerprint)),
            transport: self.transport_name(),
            retention: settings.terms(self.source).retention,
            ran: self.run.as_ref().map(|run| run.get().fence_of_lease()),
            delivery,
        };
        let inner = self.home.get().inner()?;
        Ok(match letters::keep(py, inner, given) {
            Ok(letters::Kept::Yes(_) | letters::Kept::NothingToKeep) => Disposition::Letter(why),
            Ok(letters::Kept::Unsettled) => Disposition::NotKept(why, NotKept::Unsettled),
            Err(_) => Disposition::NotKept(why, NotKept::Store),
        })
    }

    /// The sender's own name of this arrival.
    fn transport_name(&self) -> String {
        let names = [&self.transport.message_id, &self.transport.task_name];
        let named = names.into_iter().flatten().next();
        let path = self.request.uri().path();
        format!(
            "{} {path} {}",
            self.source,
            named.map_or("", String::as_str)
        )
    }
}

// === impl Reply ===

#[pymethods]
impl Reply {
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.body)
    }
}

fn request(method: &str, path: &str, headers: &Headers, body: &[u8]) -> PyResult<Request<Bytes>> {
    let built = Request::builder().method(method).uri(path);
    let built = built.body(Bytes::copy_from_slice(body));
    let mut request = built.map_err(|error| PyValueError::new_err(error.to_string()))?;
    *request.headers_mut() = header_map(headers)?;
    Ok(request)
}

fn header_map(headers: &Headers) -> PyResult<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || PyValueError::new_err(format!("the header {name:?} is not one of HTTP"));
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?;
        map.append(header, value);
    }
    Ok(map)
}
