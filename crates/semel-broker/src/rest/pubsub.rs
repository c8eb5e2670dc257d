//! The routes of Pub/Sub v1.

use super::route::{Route, RouteTable};
use crate::proto::pubsub::{publisher_server::Publisher, subscriber_server::Subscriber};
use http::Method;
use std::sync::Arc;

const PREFIXES: [&str; 1] = ["/v1"];

pub(crate) fn routes<P: Publisher + Subscriber>(pubsub: &Arc<P>) -> Vec<Route> {
    let mut routes = publisher(pubsub);
    routes.extend(subscriber(pubsub));
    routes
}

#[rustfmt::skip]
fn publisher<P: Publisher>(pubsub: &Arc<P>) -> Vec<Route> {
    let (get, post, put, patch, delete) = (&Method::GET, &Method::POST, &Method::PUT, &Method::PATCH, &Method::DELETE);
    let mut table = RouteTable::new(pubsub, "google.pubsub.v1.Publisher", &PREFIXES);
    table.add((post,   "/{topic=projects/*/topics/*}:publish"),              "*", "Publish",                |it, q| it.publish(q));
    table.add((put,    "/{name=projects/*/topics/*}"),                       "*", "CreateTopic",            |it, q| it.create_topic(q));
    table.add((get,    "/{topic=projects/*/topics/*}"),                      "",  "GetTopic",               |it, q| it.get_topic(q));
    table.add((patch,  "/{topic.name=projects/*/topics/*}"),                 "*", "UpdateTopic",            |it, q| it.update_topic(q));
    table.add((delete, "/{topic=projects/*/topics/*}"),                      "",  "DeleteTopic",            |it, q| it.delete_topic(q));
    table.add((get,    "/{project=projects/*}/topics"),                      "",  "ListTopics",             |it, q| it.list_topics(q));
    table.add((get,    "/{topic=projects/*/topics/*}/subscriptions"),        "",  "ListTopicSubscriptions", |it, q| it.list_topic_subscriptions(q));
    table.add((get,    "/{topic=projects/*/topics/*}/snapshots"),            "",  "ListTopicSnapshots",     |it, q| it.list_topic_snapshots(q));
    table.add((post,   "/{subscription=projects/*/subscriptions/*}:detach"), "",  "DetachSubscription",     |it, q| it.detach_subscription(q));
    table.routes
}

#[rustfmt::skip]
fn subscriber<P: Subscriber>(pubsub: &Arc<P>) -> Vec<Route> {
    let (get, post, put, patch, delete) = (&Method::GET, &Method::POST, &Method::PUT, &Method::PATCH, &Method::DELETE);
    let mut table = RouteTable::new(pubsub, "google.pubsub.v1.Subscriber", &PREFIXES);
    table.add((post,   "/{subscription=projects/*/subscriptions/*}:pull"),              "*", "Pull",               |it, q| it.pull(q));
    table.add((post,   "/{subscription=projects/*/subscriptions/*}:acknowledge"),       "*", "Acknowledge",        |it, q| it.acknowledge(q));
    table.add((post,   "/{subscription=projects/*/subscriptions/*}:modifyAckDeadline"), "*", "ModifyAckDeadline",  |it, q| it.modify_ack_deadline(q));
    table.add((put,    "/{name=projects/*/subscriptions/*}"),                           "*", "CreateSubscription", |it, q| it.create_subscription(q));
    table.add((get,    "/{subscription=projects/*/subscriptions/*}"),                   "",  "GetSubscription",    |it, q| it.get_subscription(q));
    table.add((patch,  "/{subscription.name=projects/*/subscriptions/*}"),              "*", "UpdateSubscription", |it, q| it.update_subscription(q));
    table.add((delete, "/{subscription=projects/*/subscriptions/*}"),                   "",  "DeleteSubscription", |it, q| it.delete_subscription(q));
    table.add((get,    "/{project=projects/*}/subscriptions"),                          "",  "ListSubscriptions",  |it, q| it.list_subscriptions(q));
    table.add((post,   "/{subscription=projects/*/subscriptions/*}:modifyPushConfig"),  "*", "ModifyPushConfig",   |it, q| it.modify_push_config(q));
    table.add((post,   "/{subscription=projects/*/subscriptions/*}:seek"),              "*", "Seek",               |it, q| it.seek(q));
    table.add((put,    "/{name=projects/*/snapshots/*}"),                               "*", "CreateSnapshot",     |it, q| it.create_snapshot(q));
    table.add((get,    "/{snapshot=projects/*/snapshots/*}"),                           "",  "GetSnapshot",        |it, q| it.get_snapshot(q));
    table.add((patch,  "/{snapshot.name=projects/*/snapshots/*}"),                      "*", "UpdateSnapshot",     |it, q| it.update_snapshot(q));
    table.add((delete, "/{snapshot=projects/*/snapshots/*}"),                           "",  "DeleteSnapshot",     |it, q| it.delete_snapshot(q));
    table.add((get,    "/{project=projects/*}/snapshots"),                              "",  "ListSnapshots",      |it, q| it.list_snapshots(q));
    table.routes
}
