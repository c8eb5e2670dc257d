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
    /// How long after SIGTERM the process is killed.
    pub(crate) killed_after: Duration,
    /// Whether its processes run between two requests, too.
    pub(crate) always_runs: bool,
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
    /// Reads the first service or workload of a file.
    ///
    /// # Errors
    /// When there is none, or a value is not a whole number; the message names the file.
    pub(crate) fn read(path: &Path) -> Result<Self, Unreadable> {
        let named = |says: String| Unreadable(format!("{}: {says}", path.display()));
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| named(format!("cannot be read: {error}")))?;
        Self::of(&text).map_err(named)
    }

    fn of(text: &str) -> Result<Self, String> {
        let documents = Document::all(text);
        let documents = documents.map_err(|error| format!("this is not YAML: {error}"))?;
        for document in &documents {
            match (document.get(&["apiVersion"]), document.get(&["kind"])) {
                (Some("serving.knative.dev/v1"), Some("Service")) => return cloud_run(document),
                (Some("apps/v1"), Some("Deployment" | "StatefulSet")) => {
                    return kubernetes(document, &documents);
                }
                _ => {}
            }
        }
        Err("there is no Cloud Run service (serving.knative.dev/v1) and no Deployment or StatefulSet (apps/v1)".into())
    }
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
    let killed = number(workload, &killed)?;
    Ok(Deployment {
        platform: Platform::Kubernetes,
        request_timeout: None,
        requests_at_once: None,
        instances_max: scaled.or(replicas).unwrap_or(KUBERNETES_REPLICAS),
        killed_after: Duration::from_secs(killed.unwrap_or(KUBERNETES_KILLED_AFTER_SECONDS)),
        always_runs: true,
        gives_admin_token: gives(workload, "SEMEL_ADMIN_TOKEN"),
    })
}

/// Whether some container is given this variable.
fn gives(document: &Document, variable: &str) -> bool {
    let spec = ["spec", "template", "spec"];
    let names = [&spec[..], &["containers", "[]", "env", "[]", "name"]].concat();
    document.all_at(&names).any(|name| name == variable)
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
