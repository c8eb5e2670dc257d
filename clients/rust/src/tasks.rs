//! Cloud Tasks: over REST, because that is all Google's Rust client speaks.

use crate::check;
use crate::handler::{Handler, PATIENCE};
use google_cloud_auth::credentials::anonymous;
use google_cloud_gax::error::rpc::Code;
use google_cloud_gax::paginator::ItemPaginator;
use google_cloud_tasks_v2::client::CloudTasks;
use google_cloud_tasks_v2::model::{HttpRequest, Queue, RetryConfig, Task};
use google_cloud_wkt::Duration;

const LOCATION: &str = "projects/shop/locations/here";
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(20);

pub async fn run(broker: &str) -> anyhow::Result<()> {
    let client = CloudTasks::builder()
        .with_endpoint(format!("http://{broker}"))
        .with_credentials(anonymous::Builder::new().build())
        .build()
        .await?;
    deliver(&client).await?;
    exhaust(&client).await?;
    list(&client).await
}

async fn deliver(client: &CloudTasks) -> anyhow::Result<()> {
    let queue = queue(client, "retry", 100).await?;
    let handler = Handler::answering(&[503, 404]).await?;
    let request = HttpRequest::new()
        .set_url(&handler.url)
        .set_headers([("X-Order", "A-1")])
        .set_body("charge");
    let task = named(&queue, "first").set_http_request(request);
    let created = create(client, &queue, task.clone()).await?;
    check(
        "name",
        created.name.as_str(),
        format!("{queue}/tasks/first"),
    )?;
    let seen = handler.deliveries(3).await?;
    check("body", &seen[0].body[..], b"charge")?;
    check("own header", &seen[0].headers["x-order"], "A-1")?;
    let told = |name| seen.iter().map(|one| one.told(name)).collect::<Vec<_>>();
    check(
        "retries",
        told("taskretrycount"),
        [Some("0"), Some("1"), Some("2")],
    )?;
    check(
        "executions",
        told("taskexecutioncount"),
        [Some("0"), Some("0"), Some("1")],
    )?;
    check(
        "previous",
        told("taskpreviousresponse"),
        [None, Some("503"), Some("404")],
    )?;
    gone(client, &created.name).await?;
    let again = create(client, &queue, task).await;
    check("its name again", code(again), Some(Code::AlreadyExists))
}

async fn exhaust(client: &CloudTasks) -> anyhow::Result<()> {
    let queue = queue(client, "exhausted", 2).await?;
    let handler = Handler::answering(&[500; 9]).await?;
    let request = HttpRequest::new().set_url(&handler.url);
    let task = named(&queue, "hopeless").set_http_request(request);
    let created = create(client, &queue, task.clone()).await?;
    gone(client, &created.name).await?;
    check("attempts", handler.deliveries(2).await?.len(), 2)?;
    let again = create(client, &queue, task).await;
    check("an exhausted name", code(again), Some(Code::AlreadyExists))
}

async fn list(client: &CloudTasks) -> anyhow::Result<()> {
    let queue = queue(client, "paused", 100).await?;
    client.pause_queue().set_name(&queue).send().await?;
    let request = HttpRequest::new().set_url("http://127.0.0.1:1/");
    for id in ["a", "b", "c"] {
        create(
            client,
            &queue,
            named(&queue, id).set_http_request(request.clone()),
        )
        .await?;
    }
    let mut tasks = client
        .list_tasks()
        .set_parent(&queue)
        .set_page_size(2)
        .by_item();
    let mut ids = Vec::new();
    while let Some(task) = tasks.next().await.transpose()? {
        ids.extend(task.name.rsplit('/').next().map(str::to_owned));
    }
    ids.sort();
    check("all pages", ids, ["a", "b", "c"])
}

/// A queue whose retries come quickly, so that nobody waits.
async fn queue(client: &CloudTasks, short: &str, attempts: i32) -> anyhow::Result<String> {
    let retries = RetryConfig::new()
        .set_max_attempts(attempts)
        .set_min_backoff(Duration::clamp(0, 20_000_000))
        .set_max_backoff(Duration::clamp(0, 50_000_000));
    let queue = Queue::new()
        .set_name(format!("{LOCATION}/queues/{short}"))
        .set_retry_config(retries);
    let created = client
        .create_queue()
        .set_parent(LOCATION)
        .set_queue(queue)
        .send()
        .await?;
    Ok(created.name)
}

fn named(queue: &str, id: &str) -> Task {
    Task::new().set_name(format!("{queue}/tasks/{id}"))
}

async fn create(
    client: &CloudTasks,
    queue: &str,
    task: Task,
) -> google_cloud_tasks_v2::Result<Task> {
    client
        .create_task()
        .set_parent(queue)
        .set_task(task)
        .send()
        .await
}

/// Waits until the task is no longer there; nobody tells us.
async fn gone(client: &CloudTasks, name: &str) -> anyhow::Result<()> {
    let gone = async {
        loop {
            match client.get_task().set_name(name).send().await {
                Ok(_) => tokio::time::sleep(LOOK_AGAIN).await,
                Err(error) if error.status().map(|it| it.code) == Some(Code::NotFound) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    };
    Ok(tokio::time::timeout(PATIENCE, gone).await??)
}

fn code<T>(result: google_cloud_tasks_v2::Result<T>) -> Option<Code> {
    Some(result.err()?.status()?.code)
}
