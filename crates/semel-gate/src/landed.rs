//! What lands of a delivery: its row, and how it comes to be durable.

use crate::disposition::Disposition;
use crate::flow::Flow;
use crate::gate::{Gate, RouteState};
use crate::naming::NamingError;
use crate::trace::DeliveryTrace;
use semel_landing::{Fault, NotLanded, Row};
use std::time::Duration;
use tokio::time::Instant;

// === impl Flow ===

impl Flow {
    /// What becomes of a delivery that has no key. One that lands among the faults is acknowledged once it is durable.
    pub(crate) async fn unnamed(&self, error: NamingError) -> Disposition {
        let route = &self.route.settings;
        let disposition = Disposition::of_unnamed(self.source, route.on_invalid, error);
        let (Disposition::Fault(invalid), Some(rule)) = (&disposition, &route.land) else {
            return disposition;
        };
        let Some(mut row) = self.row() else {
            return Disposition::FaultNotLanded(invalid.clone());
        };
        row.fault = Some(Fault {
            word: invalid.code,
            detail: invalid.detail.clone(),
        });
        let landed = self.route.land(&self.gate, &self.trace, row, rule.within);
        match landed.await {
            Ok(()) => disposition,
            Err(_) => Disposition::FaultNotLanded(invalid.clone()),
        }
    }

    /// What lands of it, but for what its handler says; `None` where nothing does.
    pub(crate) fn row(&self) -> Option<Row> {
        let (payload, arrival) = (self.payload.clone()?, &self.arrival);
        let identity = self.identity();
        Some(Row {
            event_id: identity.map(|it| it.key.to_string()),
            fingerprint: identity.map(|it| it.fingerprint.to_string()),
            message_id: arrival.message_id.clone().unwrap_or_default(),
            published_at: arrival.published_at,
            received_at: arrival.received_at,
            delivery_id: arrival.delivery_id.clone(),
            attempt: arrival.attempt,
            version: identity.map_or(0, |it| it.version),
            span: self.trace.span().map(ToString::to_string),
            ..Row::new(self.source.word(), payload)
        })
    }
}

// === impl RouteState ===

impl RouteState {
    /// Waits until a row is durable, for so long at the most; counts, traces and tells what came of it.
    pub(crate) async fn land(
        &self,
        gate: &Gate,
        trace: &DeliveryTrace,
        row: Row,
        within: Duration,
    ) -> Result<(), NotLanded> {
        let begun = Instant::now();
        let landed = match &self.landing {
            Some(landing) => landing.land(row, within).await,
            None => Err(NotLanded::Closed),
        };
        let route = &self.settings.name;
        gate.metrics.landing.landed(route, &landed, begun.elapsed());
        trace.landed(begun, &landed);
        if let Err(error) = &landed {
            tracing::warn!(route, %error, "a delivery has not landed; its sender is asked to deliver again");
        }
        landed.map(drop)
    }
}
