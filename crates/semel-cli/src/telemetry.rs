//! The standard variables of OpenTelemetry (`OTEL_*`), as far as traces go.
//!
//! As their specification asks, a value that cannot be used is said and left out: it keeps no gate from starting.

mod lists;

use crate::VERSION;
use http::Uri;
use http::uri::Scheme;
use lists::{header_map, pairs};
use semel_gate::settings::{IdentityFiles, Otlp, OtlpProtocol, Sampler, SpanBatch};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What a gate is called in traces if nobody says otherwise.
const SERVICE_NAME_DEFAULT: &str = "semel-gate";

/// What the environment says of traces.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    /// Who receives spans, if anybody.
    pub(crate) otlp: Option<Otlp>,
    /// What of it cannot be used, in sentences.
    pub(crate) warnings: Vec<String>,
}

/// Reads variables, and notes what is wrong with them.
struct Variables<'a> {
    get: &'a dyn Fn(&str) -> Option<String>,
    warnings: Vec<String>,
}

// === impl Telemetry ===

impl Telemetry {
    /// What the environment of this process says.
    #[allow(
        clippy::disallowed_methods,
        reason = "the command alone reads the environment"
    )]
    pub(crate) fn from_env() -> Self {
        Self::read(&|name| std::env::var(name).ok())
    }

    fn read(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut variables = Variables {
            get,
            warnings: Vec::new(),
        };
        let otlp = variables.wants_traces().then(|| variables.otlp()).flatten();
        Self {
            otlp,
            warnings: variables.warnings,
        }
    }
}

// === impl Variables ===

impl Variables<'_> {
    /// Off, unless an endpoint or the exporter is named.
    fn wants_traces(&mut self) -> bool {
        let disabled = self.value("OTEL_SDK_DISABLED");
        if disabled.is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return false;
        }
        let Some(exporters) = self.value("OTEL_TRACES_EXPORTER") else {
            return self.endpoint().is_some();
        };
        let names: Vec<_> = exporters.split(',').map(str::trim).collect();
        for name in names
            .iter()
            .filter(|name| !matches!(**name, "otlp" | "none"))
        {
            self.warn(format!(
                "OTEL_TRACES_EXPORTER: {name} is not known here: say otlp or none"
            ));
        }
        names.contains(&"otlp")
    }

    fn otlp(&mut self) -> Option<Otlp> {
        let protocol = self.protocol();
        let endpoint = self.endpoint_of(protocol)?;
        let headers = self.otlp_value("HEADERS").unwrap_or_default();
        let headers = header_map(&headers).map_err(|why| self.warn(why));
        let compression = self.otlp_value("COMPRESSION");
        if let Some(name) = compression.filter(|name| name != "none") {
            self.warn(format!(
                "OTEL_EXPORTER_OTLP_COMPRESSION: {name} is not supported; spans are sent as they are"
            ));
        }
        let default = Otlp::new(endpoint, protocol);
        Some(Otlp {
            headers: headers.unwrap_or_default(),
            timeout: self.otlp_millis("TIMEOUT").unwrap_or(default.timeout),
            ca: self.otlp_value("CERTIFICATE").map(PathBuf::from),
            identity: self.identity(),
            sampler: self.sampler(),
            resource: self.resource(),
            batch: self.batch(),
            ..default
        })
    }

    fn protocol(&mut self) -> OtlpProtocol {
        match self.otlp_value("PROTOCOL").as_deref() {
            Some("grpc") => OtlpProtocol::Grpc,
            Some("http/protobuf") | None => OtlpProtocol::HttpProtobuf,
            Some(other) => {
                self.warn(format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL: {other} is not supported: say grpc or http/protobuf, which is used now"
                ));
                OtlpProtocol::HttpProtobuf
            }
        }
    }

    /// The endpoint as it is written, and whether it is that of traces alone.
    fn endpoint(&self) -> Option<(String, bool)> {
        let of_traces = self.value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let of_all = || self.value("OTEL_EXPORTER_OTLP_ENDPOINT");
        of_traces
            .map(|url| (url, true))
            .or_else(|| of_all().map(|url| (url, false)))
    }

    /// Over HTTP, the endpoint of all signals gets the path of traces.
    fn endpoint_of(&mut self, protocol: OtlpProtocol) -> Option<Uri> {
        let (text, is_whole) = self.endpoint().unwrap_or_else(|| {
            let port = match protocol {
                OtlpProtocol::Grpc => 4317,
                OtlpProtocol::HttpProtobuf => 4318,
            };
            (format!("http://localhost:{port}"), false)
        });
        let url = match protocol {
            OtlpProtocol::Grpc if !text.contains("://") => {
                let insecure = self.otlp_value("INSECURE");
                let plain = insecure.is_some_and(|text| text.eq_ignore_ascii_case("true"));
                format!("{}://{text}", if plain { "http" } else { "https" })
            }
            OtlpProtocol::HttpProtobuf if !is_whole => {
                format!("{}/v1/traces", text.trim_end_matches('/'))
            }
            OtlpProtocol::Grpc | OtlpProtocol::HttpProtobuf => text.clone(),
        };
        let known = |uri: &Uri| {
            let scheme = uri.scheme();
            (scheme == Some(&Scheme::HTTP) || scheme == Some(&Scheme::HTTPS))
                && uri.host().is_some()
        };
        let read = Uri::from_str(&url).ok().filter(known);
        if read.is_none() {
            self.warn(format!(
                "OTEL_EXPORTER_OTLP_ENDPOINT: {text} is not an http or https URL: no spans are sent"
            ));
        }
        read
    }

    fn identity(&mut self) -> Option<IdentityFiles> {
        let certificate = self.otlp_value("CLIENT_CERTIFICATE");
        let key = self.otlp_value("CLIENT_KEY");
        match (certificate, key) {
            (Some(certificate), Some(key)) => Some(IdentityFiles {
                certificate: certificate.into(),
                key: key.into(),
            }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                let why = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY belong together: neither \
                           is used";
                self.warn(why.into());
                None
            }
        }
    }

    fn sampler(&mut self) -> Sampler {
        let Some(name) = self.value("OTEL_TRACES_SAMPLER") else {
            return Sampler::default();
        };
        let plain = name.strip_prefix("parentbased_").unwrap_or(&name);
        let ratio = match plain {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => self.ratio(),
            _ => {
                self.warn(format!(
                    "OTEL_TRACES_SAMPLER: {name} is not known here; parentbased_always_on is used"
                ));
                return Sampler::default();
            }
        };
        Sampler {
            parent_based: plain.len() < name.len(),
            ratio,
        }
    }

    fn ratio(&mut self) -> f64 {
        const NAME: &str = "OTEL_TRACES_SAMPLER_ARG";
        let Some(text) = self.value(NAME) else {
            return 1.0;
        };
        match text.parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => ratio,
            Ok(_) | Err(_) => {
                self.warn(format!(
                    "{NAME}: {text} is not a number from 0 to 1; 1 is used"
                ));
                1.0
            }
        }
    }

    /// What is said of this gate; what the variables say comes before what we know.
    fn resource(&mut self) -> Vec<(String, String)> {
        let text = self.value("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut resource = pairs("OTEL_RESOURCE_ATTRIBUTES", &text).unwrap_or_else(|why| {
            self.warn(why);
            Vec::new()
        });
        if let Some(name) = self.value("OTEL_SERVICE_NAME") {
            resource.retain(|(known, _)| known != "service.name");
            resource.push(("service.name".into(), name));
        }
        for (name, value) in [
            ("service.name", SERVICE_NAME_DEFAULT),
            ("service.version", VERSION),
            ("telemetry.sdk.name", "semel"),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ] {
            if resource.iter().all(|(known, _)| known != name) {
                resource.push((name.into(), value.into()));
            }
        }
        resource
    }

    fn batch(&mut self) -> SpanBatch {
        let default = SpanBatch::default();
        let queue_max = self.count("OTEL_BSP_MAX_QUEUE_SIZE", default.queue_max);
        let batch_max = self.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", default.batch_max);
        let delay = self.millis("OTEL_BSP_SCHEDULE_DELAY");
        let send_within = self.millis("OTEL_BSP_EXPORT_TIMEOUT");
        SpanBatch {
            queue_max,
            batch_max: batch_max.min(queue_max),
            delay: delay.unwrap_or(default.delay),
            send_within: send_within.unwrap_or(default.send_within),
        }
    }

    fn count(&mut self, name: &str, default: usize) -> usize {
        let count = self.parsed::<usize>(name, "a number above 0");
        count.filter(|count| *count > 0).unwrap_or(default)
    }

    fn millis(&mut self, name: &str) -> Option<Duration> {
        let millis = self.parsed(name, "a number of milliseconds");
        millis.map(Duration::from_millis)
    }

    fn otlp_millis(&mut self, name: &str) -> Option<Duration> {
        let of_traces = self.millis(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
        of_traces.or_else(|| self.millis(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    fn parsed<T: FromStr>(&mut self, name: &str, what: &str) -> Option<T> {
        let text = self.value(name)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.warn(format!("{name}: {text} is not {what}; the default is used"));
        }
        parsed
    }

    /// The variable of traces alone, or that of all signals.
    fn otlp_value(&self, name: &str) -> Option<String> {
        self.value(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
            .or_else(|| self.value(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    /// An empty variable is as good as none.
    fn value(&self, name: &str) -> Option<String> {
        let text = (self.get)(name)?.trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }
}

#[cfg(test)]
mod tests;
