//! What `semel broker` prints when it is ready: lines to copy.

use semel_broker::{Declared, Fault, Keep, Settings};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The first screen.
pub(super) fn first_screen(bound: SocketAddr, settings: &Settings) -> String {
    let address = reachable(bound);
    let kept = match &settings.keep {
        Keep::Directory(directory) => {
            format!(
                "in {}: what was accepted survives a restart and a crash",
                directory.display()
            )
        }
        Keep::Memory => "in memory: it goes with this process".into(),
    };
    let faults = faults(&settings.faults, settings.seed);
    let declared = declared(&settings.declared);
    let queues = format!("http://{address}/v2/projects/demo/locations/europe-west1/queues");
    format!(
        r#"# Cloud Tasks and Pub/Sub on {address}, gRPC and REST. Copy this to where your programs run:

export CLOUD_TASKS_EMULATOR_HOST={address}
export PUBSUB_EMULATOR_HOST={address}
export CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDTASKS=http://{address}/
export CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB=http://{address}/

# Cloud Tasks' own clients read no variable: semel broker snippets [python|node|rust|gcloud]
# kept      {kept}
# faults    {faults}
{declared}# admin     http://{address}/_semel/  (semel broker history, wait-idle, reset, advance, faults)

# A queue and a task:

curl -s {queues} -d '{{"name": "projects/demo/locations/europe-west1/queues/orders"}}'
curl -s {queues}/orders/tasks -d '{{"task": {{"httpRequest": {{"url": "http://127.0.0.1:3000/", "body": "aGVsbG8="}}}}}}'

# What came of it (until somebody answers on port 3000, it is tried again and again):

curl -s http://{address}/_semel/history

# Ctrl-C ends it.
"#
    )
}

/// What everybody should read who opens it to others.
pub(super) fn warning(listen: SocketAddr) -> String {
    format!(
        "\n  WARNING  {listen} is open to other machines. Whoever reaches it can make this machine call any address\n  \
         WARNING  that it reaches itself, without a password. Use it in a closed network only, never on the internet.\n\n"
    )
}

/// An address somebody can connect to.
fn reachable(bound: SocketAddr) -> SocketAddr {
    if bound.ip().is_unspecified() {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), bound.port())
    } else {
        bound
    }
}

fn faults(faults: &[Fault], seed: u64) -> String {
    if faults.is_empty() {
        return "none; try --fault duplicate=0.05".into();
    }
    let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
    format!("{}, seed {seed}", faults.join(" "))
}

fn declared(declared: &Declared) -> String {
    let (queues, topics) = (declared.queues().count(), declared.topics().count());
    let subscriptions = declared.subscriptions().count();
    if queues + topics + subscriptions == 0 {
        return String::new();
    }
    format!("# declared  {queues} queues, {topics} topics, {subscriptions} subscriptions\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_screen_can_be_sourced_but_for_its_calls() {
        let settings = Settings {
            faults: vec!["duplicate=0.05".parse().unwrap()],
            seed: 7,
            declared: "project = \"p\"\n[[topic]]\nname = \"t\"".parse().unwrap(),
            ..Settings::default()
        };
        let said = first_screen("0.0.0.0:9".parse().unwrap(), &settings);
        assert!(
            said.contains("\nexport PUBSUB_EMULATOR_HOST=127.0.0.1:9\n"),
            "{said}"
        );
        assert!(said.contains("duplicate=0.05, seed 7"), "{said}");
        assert!(
            said.contains("0 queues, 1 topics, 0 subscriptions"),
            "{said}"
        );
        let odd = said.lines().find(|line| {
            !["", "#", "export ", "curl "].iter().any(|it| {
                if it.is_empty() {
                    line.is_empty()
                } else {
                    line.starts_with(it)
                }
            })
        });
        assert_eq!(odd, None);
    }
}
