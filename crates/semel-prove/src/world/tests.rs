use super::*;
use crate::options::Options;
use crate::scenario::Scenario;
use crate::scenario::check::check;
use std::net::TcpListener;

/// A process that starts once in its life, and what is said when it was killed.
async fn said_of_one_that_starts_once(dependency: Option<TcpListener>) -> String {
    let listener = dependency.as_ref();
    let port = listener.map_or(1, |it| it.local_addr().unwrap().port());
    let python = testbed::python().unwrap();
    let scenario = format!(
        r#"
        promise = "exactly once"
        [[process]]
        name = "handler"
        spawn = """sh -c 'mkdir {{dir}}/on || exit 7
            exec {} -m http.server --bind 127.0.0.1 {{port}}'"""
        [[dependency]]
        env = "SHOP_URL"
        url = "redis://127.0.0.1:{port}"
        [deliver]
        as = "http"
        [[effect]]
        name = "x"
        command = "true"
        "#,
        python.display()
    );
    let scenario: Scenario = toml::from_str(&scenario).unwrap();
    let options = Options::sample("PATH", "/usr/bin:/bin");
    let endpoints = check(&scenario, &options).unwrap();
    let mut world = World::plan(&scenario, &options, endpoints).unwrap();
    world.start().await.unwrap();
    world.kill(0);
    world.restart_ended().await.unwrap_err().to_string()
}

#[tokio::test]
async fn process_that_does_not_come_back_is_to_blame_unless_its_server_is_away() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (there, away) = tokio::join!(
        said_of_one_that_starts_once(Some(listener)),
        said_of_one_that_starts_once(None)
    );
    assert!(there.contains("`handler` did not come back"), "{there}");
    assert!(away.contains("`SHOP_URL` cannot be reached"), "{away}");
}
