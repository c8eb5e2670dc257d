//! What nearly every test of the gate names: the bed and its parts, and the words of its settings and
//! of the protocol.

pub(crate) use super::deliveries::envelope;
pub(crate) use super::wire::{closed, connect, dripping, exchange};
pub(crate) use super::{Act, Answer, Ask, BROKERS, Bed, Down, Handler, SENDERS, Say, Seen, Sender};
pub(crate) use super::{
    Switch, here, keyed_by, pass, refused, route, terms_of, until, upstream, within,
};
pub(crate) use bytes::Bytes;
pub(crate) use http::{Method, Request, Response};
pub(crate) use http_body_util::{BodyExt, Full};
pub(crate) use semel::Outcome;
pub(crate) use semel::letter::Reason;
pub(crate) use semel::protocol::{InDoubt, State};
pub(crate) use semel::store::StoreExt;
pub(crate) use semel::work::Completes;
pub(crate) use semel_gate::settings::{FingerprintRule, OnInvalid, Route, Settings, Source};
pub(crate) use serde_json::{Value, json};
pub(crate) use std::net::SocketAddr;
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;
pub(crate) use tokio::io::{AsyncReadExt, AsyncWriteExt};
pub(crate) use tokio::net::{TcpListener, TcpStream};
pub(crate) use tokio::sync::mpsc;
pub(crate) use tokio::task::JoinHandle;
pub(crate) use tokio::time::Instant;
