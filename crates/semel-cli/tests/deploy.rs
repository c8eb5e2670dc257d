//! `semel check --for`: a configuration and what deploys it; and the files of deploy/, as far as `semel` judges them.

use crate::support::root;
use crate::support::said::{Said, Says, command};
use std::path::Path;
use tempfile::TempDir;

/// What a test says of a Cloud Run service.
struct Service {
    timeout: &'static str,
    concurrency: &'static str,
    max_scale: &'static str,
}

const SERVICE: Service = Service {
    timeout: "600",
    concurrency: "8",
    max_scale: "10",
};

const CONFIG: &str = r#"store = "postgres://gate@h/shop"
upstream = "http://127.0.0.1:3000"
grace = "8s"
database_connections = 80
[[route]]
name = "charge"
path = "/charge"
source = "cloud-tasks"
"#;

// === impl Service ===

impl Service {
    fn yaml(&self) -> String {
        let Self {
            timeout,
            concurrency,
            max_scale,
        } = self;
        format!(
            "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata:\n  name: shop\nspec:\n  template:\n    metadata:\n      \
             annotations:\n        autoscaling.knative.dev/maxScale: \"{max_scale}\"\n    spec:\n      \
             timeoutSeconds: {timeout}\n      containerConcurrency: {concurrency}\n      containers:\n        - image: semel\n"
        )
    }

    fn with(&self, config: &str) -> Said {
        check(config, &self.yaml())
    }
}

fn check(config: &str, yaml: &str) -> Said {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("semel.toml"), config).unwrap();
    std::fs::write(directory.path().join("deployment.yaml"), yaml).unwrap();
    let mut check = command("check --for deployment.yaml");
    check.current_dir(directory.path());
    check.output().unwrap().into()
}

#[test]
fn a_configuration_that_fits_its_service_is_proved() {
    let said = SERVICE.with(CONFIG).good();
    for proved in [
        "route charge, cloud-tasks: answered within 600s ≤ timeoutSeconds 600",
        "containerConcurrency 8 × maxScale 10 ≤ database_connections 80",
        "grace 8s + 1s ≤ 10s: the gate ends before Cloud Run kills it",
    ] {
        said.has(&format!("proved   {proved}"));
    }
    said.has("the gates themselves open up to 4 × 10 = 40 connections to the store");
}

#[test]
fn a_directory_in_the_environment_of_a_service_is_broken() {
    let env = "- image: semel\n          env:\n            - name: SEMEL_STORE\n              value: dir:/data\n";
    let yaml = SERVICE.yaml().replace("- image: semel\n", env);
    check(CONFIG, &yaml).ends(
        64,
        "SEMEL_STORE: store is a directory, and Cloud Run may run several gates",
    );
    check(CONFIG, &yaml.replace("dir:/data", "redis://h")).good();
}

#[test]
fn a_service_that_gives_up_before_the_gate_answers_is_broken() {
    let short = Service {
        timeout: "300",
        ..SERVICE
    };
    let says =
        "answered within 600s > timeoutSeconds 300: Cloud Run would answer in the gate's place";
    let said = short.with(CONFIG);
    said.ends(64, says);
    said.stderr.has("set timeoutSeconds to 600 or more");
    short.with(&format!("{CONFIG}timeout = \"299s\"\n")).good();
    let long = "deadline = \"4000s\"\ntimeout = \"3999s\"\nmax_backoff = \"60s\"";
    let said = short.with(&format!("{CONFIG}{long}\n"));
    said.ends(64, "it can be 3600 at the most: shorten timeout");
}

#[test]
fn a_service_that_is_stopped_between_requests_does_no_long_work() {
    let always = format!("cpu = \"always\"\n{CONFIG}");
    SERVICE
        .with(&always)
        .ends(64, "its containers are stopped between requests");
    let annotation = "        run.googleapis.com/cpu-throttling: \"false\"\n    spec:";
    let yaml = SERVICE.yaml().replacen("    spec:", annotation, 1);
    check(&always, &yaml)
        .good()
        .has("a run may continue without its sender");
    check(CONFIG, &yaml)
        .good()
        .has("with cpu = \"always\" a run may outlast its sender");
}

/// Behind Pub/Sub's 10 s, work of 12 s is cut off again and again; Cloud Tasks waits as long as the handler may take.
#[test]
fn a_service_that_is_stopped_between_requests_is_named_before_routes_of_short_deadlines() {
    let says = "the service lacks run.googleapis.com/cpu-throttling: \"false\"";
    let pushed = CONFIG.replace("cloud-tasks", "pubsub");
    let said = SERVICE.with(&pushed).good();
    said.has(says);
    said.has("work on charge that takes longer than its deadline is cut off in doubt");
    SERVICE.with(CONFIG).good().lacks(says);
    let annotation = "        run.googleapis.com/cpu-throttling: \"false\"\n    spec:";
    let yaml = SERVICE.yaml().replacen("    spec:", annotation, 1);
    check(&pushed, &yaml).good().lacks(says);
}

#[test]
fn more_requests_at_once_than_connections_are_broken() {
    let wide = Service {
        max_scale: "11",
        ..SERVICE
    };
    wide.with(CONFIG).ends(
        64,
        "containerConcurrency 8 × maxScale 11 = 88 > database_connections 80",
    );
    let unsaid = CONFIG.replace("database_connections = 80\n", "");
    let said = wide.with(&unsaid).good();
    said.has("note     containerConcurrency 8 × maxScale 11 = 88 requests at once");
    // Cloud Run takes 0 for its default.
    let zero = Service {
        concurrency: "0",
        ..SERVICE
    };
    zero.with(CONFIG)
        .ends(64, "containerConcurrency 80 × maxScale 10 = 800 >");
    // One gate alone is judged without a deployment, too.
    let few = CONFIG.replace("= 80", "= 9");
    SERVICE.with(&few).ends(
        64,
        "the concurrency of all routes, 10, = 10 > database_connections 9",
    );
}

#[test]
fn what_the_platform_does_by_itself_is_judged() {
    let said = SERVICE.with(&CONFIG.replace("grace = \"8s\"\n", "")).good();
    said.has("warning  grace 10s + 1s > 10s: Cloud Run would kill the gate");
    said.has("set grace = \"8s\"");
    let open = format!("admin = \"0.0.0.0:8081\"\n{CONFIG}");
    SERVICE
        .with(&open)
        .ends(64, "can be reached by others: set `admin_token`");
    let token = "          env: [{name: SEMEL_ADMIN_TOKEN, value: long}]\n";
    check(&open, &format!("{}{token}", SERVICE.yaml())).good();
    let embedded = CONFIG.replace("postgres://gate@h/shop", "dir:./x");
    SERVICE.with(&embedded).ends(
        64,
        "store is a directory, and Cloud Run may run several gates",
    );
}

#[test]
fn a_workload_of_kubernetes_is_judged_too() {
    let workload =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec:\n  replicas: 8\n";
    let said = check(CONFIG, workload).good();
    said.has("proved   the concurrency of all routes, 10 × replicas 8 ≤ database_connections 80");
    said.has("proved   grace 8s + 1s ≤ 30s: the gate ends before Kubernetes kills it");
    said.lacks("timeoutSeconds");
    let more = workload.replace("replicas: 8", "replicas: 9");
    check(CONFIG, &more).ends(64, "× replicas 9 = 90 > database_connections 80");
}

#[test]
fn a_file_that_deploys_nothing_is_a_mistake() {
    check(CONFIG, "a: [").ends(64, "deployment.yaml: this is not YAML");
    check(CONFIG, "kind: Service\n").ends(64, "deployment.yaml: there is no Cloud Run service");
    let mut gone = command("check --upstream http://h --for gone.yaml");
    Said::from(gone.output().unwrap()).ends(64, "gone.yaml: cannot be read");
}

/// `deploy/check` does this, and more that needs tools.
#[test]
fn the_configurations_of_the_repository_fit_their_deployments() {
    let deploy = root().join("deploy");
    let check = |config: &Path, deployment: Option<&Path>| {
        let mut check = command("check");
        check.arg("--config").arg(config);
        if let Some(deployment) = deployment {
            check.arg("--for").arg(deployment);
        }
        Said::from(check.output().unwrap()).good()
    };
    for service in ["cloud-sql.yaml", "memorystore.yaml"] {
        let service = deploy.join("cloud-run").join(service);
        let said = check(&deploy.join("cloud-run/semel.toml"), Some(&service));
        said.has("containerConcurrency 8 × maxScale 10 ≤ database_connections 80");
    }
    for file in ["compose/semel.toml", "systemd/semel.toml"] {
        check(&deploy.join(file), None);
    }
    let sidecar = deploy.join("kubernetes/sidecar.yaml");
    let text = std::fs::read_to_string(&sidecar).unwrap();
    let (_, config) = text.split_once("  semel.toml: |\n").unwrap();
    let (config, _) = config.split_once("---").unwrap();
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("semel.toml");
    std::fs::write(&file, config).unwrap();
    let said = check(&file, Some(&sidecar));
    said.has("the concurrency of all routes, 20 × replicas 3 ≤ database_connections 60");
}
