//! What a gate is deployed by: the few things in a Cloud Run service or a Kubernetes workload that its configuration
//! must fit.

mod yaml;

use crate::config::Platform;
use std::path::Path;
use std::time::Duration;
use yaml::Document;

/// A deployment, with the platform's defaults where it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deployment {
    pub(crate) platform: Platform,
    /// When the platform gives up on one request.
    pub(crate) request_timeout: Option<Duration>,
    /// How many requests the platform gives one instance at once; `None` when it does not count.
    pub(crate) requests_at_once: Option<u64>,
    pub(crate) instances_max: u64,
    /// How long after SIGTERM the process is killed: what `preStop` takes is gone by then.
    pub(crate) killed_after: Duration,
    /// Whether its processes run between two requests, too.
    pub(crate) always_runs: bool,
    /// Whether some container's `SEMEL_STORE` is a directory.
    pub(crate) gives_embedded_store: bool,
    /// Whether some container is given the gate's `SEMEL_ADMIN_TOKEN`, from a secret or not.
    pub(crate) gives_admin_token: bool,
}

/// A file that says none of this.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(String);

const CLOUD_RUN_TIMEOUT_SECONDS: u64 = 300;
const CLOUD_RUN_CONCURRENCY: u64 = 80;
const CLOUD_RUN_MAX_SCALE: u64 = 100;
const CLOUD_RUN_KILLED_AFTER: Duration = Duration::from_secs(10);

const KUBERNETES_REPLICAS: u64 = 1;
const KUBERNETES_KILLED_AFTER_SECONDS: u64 = 30;

/// The longest that Cloud Run lets a request last.
pub(crate) const CLOUD_RUN_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

// === impl Deployment ===

impl Deployment {
    /// Reads the service or workload of a file; of several, the one that has a gate in it.
    ///
    /// # Errors
    /// When there is none or it is not clear which, or a value is not a whole number; the message names the file.
    pub(crate) fn read(path: &Path) -> Result<Self, Unreadable> {
        let named = |says: String| Unreadable(format!("{}: {says}", path.display()));
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| named(format!("cannot be read: {error}")))?;
        Self::of(&text).map_err(named)
    }

    fn of(text: &str) -> Result<Self, String> {
        let documents = Document::all(text);
        let documents = documents.map_err(|error| format!("this is not YAML: {error}"))?;
        let deployed: Vec<_> = documents
            .iter()
            .filter_map(|it| Some((it, platform(it)?)))
            .collect();
        let gates = deployed.iter().filter(|(it, _)| has_gate(it));
        let gates: Vec<_> = gates.collect();
        match (deployed.as_slice(), gates.as_slice()) {
            ([(document, platform)], _) | (_, [(document, platform)]) => match platform {
                Platform::CloudRun => cloud_run(document),
                Platform::Kubernetes => kubernetes(document, &documents),
            },
            ([], _) => Err("there is no Cloud Run service (serving.knative.dev/v1) and no Deployment or StatefulSet (apps/v1)".into()),
            (several, _) => {
                let names = several.iter().map(|(it, _)| it.get(&["metadata", "name"]).unwrap_or("?"));
                let names: Vec<_> = names.collect();
                Err(format!(
                    "{} are deployed, and it is not clear which of them is the gate: it has an image with semel in its \
                     name or a SEMEL_ variable; give a file with that one alone",
                    names.join(", ")
                ))
            }
        }
    }
}

/// What runs a document, if it is one of what runs.
fn platform(document: &Document) -> Option<Platform> {
    match (document.get(&["apiVersion"]), document.get(&["kind"])) {
        (Some("serving.knative.dev/v1"), Some("Service")) => Some(Platform::CloudRun),
        (Some("apps/v1"), Some("Deployment" | "StatefulSet")) => Some(Platform::Kubernetes),
        _ => None,
    }
}

fn has_gate(document: &Document) -> bool {
    !gate_containers(document).is_empty()
}

/// The containers that are gates: by their image, or what they are given.
fn gate_containers(document: &Document) -> Vec<usize> {
    let images = in_containers(document, &["image"]).filter(|(_, name)| name.contains("semel"));
    let variables = in_containers(document, &["env", "[]", "name"])
        .filter(|(_, name)| name.starts_with("SEMEL_"));
    images.chain(variables).map(|(number, _)| number).collect()
}

/// All that stands at the end of these names in some container, with the number of that.
fn in_containers<'a>(
    document: &'a Document,
    names: &[&'a str],
) -> impl Iterator<Item = (usize, &'a str)> {
    let containers = ["spec", "template", "spec", "containers", "[]"];
    document.items_at([&containers[..], names].concat())
}

fn cloud_run(service: &Document) -> Result<Deployment, String> {
    let max_scale = "autoscaling.knative.dev/maxScale";
    let scale = number(
        service,
        &["spec", "template", "metadata", "annotations", max_scale],
    )?;
    let throttling = "run.googleapis.com/cpu-throttling";
    let throttling = service.get(&["spec", "template", "metadata", "annotations", throttling]);
    let spec = |name| number(service, &["spec", "template", "spec", name]);
    let timeout = spec("timeoutSeconds")?.unwrap_or(CLOUD_RUN_TIMEOUT_SECONDS);
    // Cloud Run takes 0 for "not said".
    let concurrency = spec("containerConcurrency")?.filter(|concurrency| *concurrency > 0);
    Ok(Deployment {
        platform: Platform::CloudRun,
        request_timeout: Some(Duration::from_secs(timeout)),
        requests_at_once: Some(concurrency.unwrap_or(CLOUD_RUN_CONCURRENCY)),
        instances_max: scale.unwrap_or(CLOUD_RUN_MAX_SCALE),
        killed_after: CLOUD_RUN_KILLED_AFTER,
        always_runs: throttling == Some("false"),
        gives_embedded_store: gives_embedded_store(service),
        gives_admin_token: gives(service, "SEMEL_ADMIN_TOKEN"),
    })
}

/// An autoscaler in the same file has the last word on replicas.
fn kubernetes(workload: &Document, all: &[Document]) -> Result<Deployment, String> {
    let name = workload.get(&["metadata", "name"]);
    let scales = |document: &&Document| {
        document.get(&["kind"]) == Some("HorizontalPodAutoscaler")
            && document.get(&["spec", "scaleTargetRef", "name"]) == name
    };
    let scaled = match all.iter().find(scales) {
        Some(scaler) => number(scaler, &["spec", "maxReplicas"])?,
        None => None,
    };
    let replicas = number(workload, &["spec", "replicas"])?;
    let killed = ["spec", "template", "spec", "terminationGracePeriodSeconds"];
    let killed = number(workload, &killed)?.unwrap_or(KUBERNETES_KILLED_AFTER_SECONDS);
    Ok(Deployment {
        platform: Platform::Kubernetes,
        request_timeout: None,
        requests_at_once: None,
        instances_max: scaled.or(replicas).unwrap_or(KUBERNETES_REPLICAS),
        killed_after: Duration::from_secs(killed.saturating_sub(pre_stop(workload))),
        always_runs: true,
        gives_embedded_store: gives_embedded_store(workload),
        gives_admin_token: gives(workload, "SEMEL_ADMIN_TOKEN"),
    })
}

/// Whether some container is given this variable.
fn gives(document: &Document, variable: &str) -> bool {
    in_containers(document, &["env", "[]", "name"]).any(|(_, name)| name == variable)
}

fn gives_embedded_store(document: &Document) -> bool {
    document
        .values_of("SEMEL_STORE")
        .any(|url| url.starts_with("dir:"))
}

/// How many seconds the gate's container sleeps before it hears SIGTERM: `sleep: {seconds: 5}`, `[sleep, "5"]` or
/// `[sh, -c, "sleep 5"]`.
fn pre_stop(workload: &Document) -> u64 {
    let gates = gate_containers(workload);
    let at = |names: &[&'static str]| {
        let names = [&["lifecycle", "preStop"], names].concat();
        let found = in_containers(workload, &names).filter(|(number, _)| gates.contains(number));
        found.map(|(_, text)| text).collect::<Vec<_>>()
    };
    let command = at(&["exec", "command", "[]"]).join(" ");
    let words: Vec<_> = command.split([' ', ';', '&']).collect();
    let slept = words.windows(2).filter_map(|pair| match pair {
        ["sleep", seconds] => Some(*seconds),
        _ => None,
    });
    let seconds = at(&["sleep", "seconds"]).into_iter().chain(slept);
    seconds.filter_map(|it| it.parse().ok()).max().unwrap_or(0)
}

/// A whole number, if it is given; values of annotations are text.
fn number(document: &Document, names: &[&str]) -> Result<Option<u64>, String> {
    let number = document.get(names).map(str::parse).transpose();
    number.map_err(|_| format!("{} is not a whole number", names.join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_says_nothing_has_the_platforms_defaults() {
        let service = "apiVersion: serving.knative.dev/v1\nkind: Service\n";
        let found = Deployment::of(service).unwrap();
        assert_eq!(found.request_timeout, Some(Duration::from_secs(300)));
        assert_eq!(
            (found.requests_at_once, found.instances_max),
            (Some(80), 100)
        );
        assert!(!found.gives_admin_token && !found.always_runs);
        let env = "{env: [{name: A, value: b}, {name: SEMEL_ADMIN_TOKEN, valueFrom: {}}]}";
        let with = format!(
            "{service}spec: {{template: {{spec: {{containers: [{{image: a}}, {env}]}}}}}}\n"
        );
        assert!(Deployment::of(&with).unwrap().gives_admin_token);
    }

    #[test]
    fn an_autoscaler_has_the_last_word_on_replicas() {
        let workload =
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec:\n  replicas: 2\n";
        let scaler = "---\nkind: HorizontalPodAutoscaler\nspec:\n  maxReplicas: 7\n  scaleTargetRef: {name: shop}\n";
        assert_eq!(Deployment::of(workload).unwrap().instances_max, 2);
        let both = format!("{workload}{scaler}");
        assert_eq!(Deployment::of(&both).unwrap().instances_max, 7);
        let other = format!("{workload}{}", scaler.replace("shop", "other"));
        assert_eq!(Deployment::of(&other).unwrap().instances_max, 2);
    }

    #[test]
    fn what_pre_stop_takes_is_gone_when_the_gate_hears_of_its_end() {
        let with = |hook: &str| {
            let container = format!("{{image: semel, lifecycle: {{preStop: {hook}}}}}");
            let text = format!(
                "apiVersion: apps/v1\nkind: Deployment\nspec: {{template: {{spec: {{terminationGracePeriodSeconds: 20, \
                 containers: [{{image: a, lifecycle: {{preStop: {{sleep: {{seconds: 19}}}}}}}}, {container}]}}}}}}\n"
            );
            Deployment::of(&text).unwrap().killed_after.as_secs()
        };
        assert_eq!(with("{sleep: {seconds: 5}}"), 15);
        assert_eq!(with("{exec: {command: [sleep, '15']}}"), 5);
        assert_eq!(with("{exec: {command: [sh, -c, 'sleep 7; true']}}"), 13);
        assert_eq!(with("{exec: {command: [sh, -c, 'sync']}}"), 20);
        assert_eq!(with("{sleep: {seconds: 60}}"), 0);
    }

    #[test]
    fn of_several_services_the_gate_s_is_read() {
        let service = |name: &str, seconds: u64, container: &str| {
            format!(
                "---\napiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{template: \
                 {{spec: {{timeoutSeconds: {seconds}, containers: [{container}]}}}}}}\n"
            )
        };
        let handler = service("shop", 1, "{image: shop}");
        for gate in [
            "{image: 'registry/semel:1'}",
            "{image: a, env: [{name: SEMEL_CONFIG, value: b}]}",
        ] {
            let gate = service("gate", 2, gate);
            for both in [format!("{handler}{gate}"), format!("{gate}{handler}")] {
                let found = Deployment::of(&both).unwrap();
                assert_eq!(found.request_timeout, Some(Duration::from_secs(2)));
            }
        }
        let error = Deployment::of(&format!("{handler}{}", service("b", 2, "{image: b}")));
        assert!(error.unwrap_err().starts_with("shop, b are deployed"));
    }

    #[test]
    fn a_file_that_says_none_of_this_is_told_so() {
        for (text, says) in [
            ("a: [", "this is not YAML"),
            ("kind: Service\napiVersion: v1\n", "no Cloud Run service"),
            ("", "no Cloud Run service"),
            (
                "apiVersion: serving.knative.dev/v1\nkind: Service\nspec: {template: {spec: {timeoutSeconds: soon}}}\n",
                "spec.template.spec.timeoutSeconds is not a whole number",
            ),
        ] {
            let error = Deployment::of(text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
