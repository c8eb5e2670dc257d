//! The routes of Cloud Tasks v2.

use super::route::{Buffered, Route, RouteTable, RpcFuture};
use crate::proto::tasks::cloud_tasks_server::CloudTasks;
use crate::proto::tasks::{BufferTaskResponse, Task};
use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method};
use prost::Message;
use std::sync::Arc;
use tonic::Status;

/// What only REST offers: a request becomes a task of a queue that knows its target.
#[async_trait]
pub(crate) trait Buffer: Send + Sync + 'static {
    async fn buffer(
        &self,
        queue: &str,
        task_id: Option<&str>,
        method: &Method,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Task, Status>;
}

/// With the version, and without it, as firebase-admin asks.
const PREFIXES: [&str; 2] = ["/v2", ""];

#[rustfmt::skip]
pub(crate) fn routes<T: CloudTasks + Buffer>(tasks: &Arc<T>) -> Vec<Route> {
    let (get, post, patch, delete) = (&Method::GET, &Method::POST, &Method::PATCH, &Method::DELETE);
    let mut table = RouteTable::new(tasks, "google.cloud.tasks.v2.CloudTasks", &PREFIXES);
    // The most asked for come first.
    table.add((post,   "/{parent=projects/*/locations/*/queues/*}/tasks"),       "*", "CreateTask",  |it, q| it.create_task(q));
    table.add((get,    "/{name=projects/*/locations/*/queues/*/tasks/*}"),       "",  "GetTask",     |it, q| it.get_task(q));
    table.add((delete, "/{name=projects/*/locations/*/queues/*/tasks/*}"),       "",  "DeleteTask",  |it, q| it.delete_task(q));
    table.add((get,    "/{parent=projects/*/locations/*/queues/*}/tasks"),       "",  "ListTasks",   |it, q| it.list_tasks(q));
    table.add((post,   "/{name=projects/*/locations/*/queues/*/tasks/*}:run"),   "*", "RunTask",     |it, q| it.run_task(q));
    table.add_buffer("/{queue=projects/*/locations/*/queues/*}/tasks:buffer", buffer);
    table.add_buffer("/{queue=projects/*/locations/*/queues/*}/tasks/{task_id}:buffer", buffer);
    table.add((get,    "/{parent=projects/*/locations/*}/queues"),           "",      "ListQueues",  |it, q| it.list_queues(q));
    table.add((get,    "/{name=projects/*/locations/*/queues/*}"),           "",      "GetQueue",    |it, q| it.get_queue(q));
    table.add((post,   "/{parent=projects/*/locations/*}/queues"),           "queue", "CreateQueue", |it, q| it.create_queue(q));
    table.add((patch,  "/{queue.name=projects/*/locations/*/queues/*}"),     "queue", "UpdateQueue", |it, q| it.update_queue(q));
    table.add((delete, "/{name=projects/*/locations/*/queues/*}"),           "",      "DeleteQueue", |it, q| it.delete_queue(q));
    table.add((post,   "/{name=projects/*/locations/*/queues/*}:purge"),     "*",     "PurgeQueue",  |it, q| it.purge_queue(q));
    table.add((post,   "/{name=projects/*/locations/*/queues/*}:pause"),     "*",     "PauseQueue",  |it, q| it.pause_queue(q));
    table.add((post,   "/{name=projects/*/locations/*/queues/*}:resume"),    "*",     "ResumeQueue", |it, q| it.resume_queue(q));
    table.routes
}

fn buffer<T: Buffer>(tasks: Arc<T>, buffered: Buffered) -> RpcFuture {
    Box::pin(async move {
        let Buffered {
            values,
            method,
            headers,
            body,
        } = buffered;
        let mut values = values.iter().map(String::as_str);
        let (queue, id) = (values.next().unwrap_or_default(), values.next());
        let task = tasks.buffer(queue, id, &method, &headers, body).await?;
        Ok(BufferTaskResponse { task: Some(task) }.encode_to_vec())
    })
}
