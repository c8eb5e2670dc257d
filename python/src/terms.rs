//! Terms: what is fixed when a function is decorated. A call adds its payload.

use crate::error;
use bytes::Bytes;
use pyo3::prelude::*;
use semel::key::{Delivered, Field, Key, KeyError, KeyRule, Part, Scope};
use semel::work::{Backoff, Completes, Duplicates};
use semel::{Fingerprint, InDoubt, Payload, Work};
use semel_gate::label::{Description, LabelOf};
use std::time::Duration;

/// On which terms the calls of one function run.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Terms {
    scope: Scope,
    rule: KeyRule,
    lease: Duration,
    retention: Duration,
    timeout: Duration,
    wait: Duration,
    in_doubt: InDoubt,
    max_attempts: u32,
    backoff: Backoff,
    completes: Completes,
    /// Who calls, as labels say it: `python` or `celery`.
    source: String,
    /// Whether labels leave out the key's parts.
    private: bool,
}

/// Which work a call is.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) key: Key,
    pub(crate) fingerprint: Fingerprint,
    /// For the label.
    pub(crate) description: Description,
}

// === impl Terms ===

#[pymethods]
impl Terms {
    #[new]
    #[pyo3(signature = (namespace, route, rule, *, lease, retention, timeout, wait, park=false, max_attempts=0,
        backoff=(0.0, 0.0), handler_completes=false, source="python".to_owned(), private=false))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "keyword arguments of a constructor in Python"
    )]
    fn new(
        py: Python<'_>,
        namespace: String,
        route: String,
        rule: Vec<String>,
        lease: f64,
        retention: f64,
        timeout: f64,
        wait: f64,
        park: bool,
        max_attempts: u32,
        backoff: (f64, f64),
        handler_completes: bool,
        source: String,
        private: bool,
    ) -> PyResult<Self> {
        let rule = KeyRule::new(rule.iter().map(String::as_str));
        let terms = Self {
            scope: Scope::new(namespace, route),
            rule: rule.map_err(|error| error::of_key(py, &error))?,
            lease: seconds(py, "lease", lease)?,
            retention: seconds(py, "retention", retention)?,
            timeout: seconds(py, "timeout", timeout)?,
            wait: seconds(py, "wait", wait)?,
            in_doubt: if park { InDoubt::Park } else { InDoubt::Retry },
            max_attempts,
            backoff: Backoff {
                first: seconds(py, "backoff", backoff.0)?,
                max: seconds(py, "backoff", backoff.1)?,
            },
            completes: if handler_completes {
                Completes::Handler
            } else {
                Completes::Run
            },
            source,
            private,
        };
        let blank = Identity {
            key: Key::from_bytes([0; 32]),
            fingerprint: Fingerprint::off(),
            description: Description::default(),
        };
        let work = terms.work(&blank, None, None);
        work.validate()
            .map_err(|error| error::of_store(py, &error))?;
        Ok(terms)
    }

    /// The key of a call, as it is written.
    fn key(&self, py: Python<'_>, payload: &[u8], own: &[u8]) -> PyResult<String> {
        let identity = self.identify(payload, own);
        let identity = identity.map_err(|error| error::of_key(py, &error))?;
        Ok(identity.key.to_string())
    }

    /// The fingerprint of a call.
    #[staticmethod]
    fn fingerprint(own: &[u8]) -> String {
        Fingerprint::of_payload(&Payload::read(own, [])).to_string()
    }
}

impl Terms {
    /// Which work a call is. `payload` holds all arguments, `own` those that differ from their default: a parameter
    /// that is added later with a default changes neither the key nor the fingerprint of calls made before.
    pub(crate) fn identify(&self, payload: &[u8], own: &[u8]) -> Result<Identity, KeyError> {
        let mut fields = self.rule.fields(&Delivered::payload(payload))?;
        if own != payload {
            let digest = digest(own)?;
            for (field, part) in fields.iter_mut().zip(self.rule.parts()) {
                if *part == Part::Body {
                    field.clone_from(&digest);
                }
            }
        }
        self.rule.refuse_empty(&fields)?;
        let description = if self.private {
            Description::default()
        } else {
            Description::in_clear(&self.rule, &fields)
        };
        Ok(Identity {
            key: Key::of(&self.scope, &fields)?,
            fingerprint: Fingerprint::of_payload(&Payload::read(own, [])),
            description,
        })
    }

    /// What the record of a call is about, for people. `by`: this process; `id`: what Celery calls the message.
    pub(crate) fn label(&self, identity: &Identity, by: &str, id: Option<&str>) -> Bytes {
        let label = LabelOf {
            route: &self.scope.route,
            source: &self.source,
            gate: by,
            id,
            from: None,
            description: Some(&identity.description),
            traceparent: None,
        };
        label.encode()
    }

    /// The work of one call. Celery knows a task's time limit only when its message is there.
    pub(crate) fn work(
        &self,
        identity: &Identity,
        timeout: Option<Duration>,
        wait: Option<Duration>,
    ) -> Work {
        Work::new(identity.key, identity.fingerprint)
            .lease(self.lease)
            .retention(self.retention)
            .timeout(timeout.unwrap_or(self.timeout))
            .in_doubt(self.in_doubt)
            .max_attempts(self.max_attempts)
            .backoff(self.backoff)
            .duplicates(Duplicates::Wait(wait.unwrap_or(self.wait)))
            .completes(self.completes)
    }

    pub(crate) fn route(&self) -> &str {
        &self.scope.route
    }

    pub(crate) fn retention(&self) -> Duration {
        self.retention
    }
}

fn digest(own: &[u8]) -> Result<Field, KeyError> {
    let mut fields = KeyRule::new(["body"])?.fields(&Delivered::payload(own))?;
    Ok(fields.remove(0))
}

/// Seconds as Python has them.
pub(crate) fn seconds(py: Python<'_>, name: &str, value: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        let message = format!("{name} must be a number of seconds, 0 or more, not {value}");
        error::of_setting(py, &message)
    })
}
