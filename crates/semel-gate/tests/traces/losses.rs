//! A receiver that is away, slow or full costs spans, and nothing else.

use super::*;
use crate::receiver::Mood;

/// The spans of one delivery are sent together.
const DELIVERY_BY_DELIVERY: SpanBatch = SpanBatch {
    queue_max: 2048,
    batch_max: 4,
    delay: Duration::from_secs(3600),
    send_within: Duration::from_secs(30),
};

#[tokio::test]
async fn a_receiver_that_is_away_costs_nothing_but_spans() {
    for protocol in PROTOCOLS {
        let receiver = Receiver::start().await;
        let mut to = otlp(&receiver, protocol);
        // Nobody listens there.
        let nobody = TcpListener::bind(here())
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        to.endpoint = format!("http://{nobody}/v1/traces").parse().unwrap();
        to.batch = SpanBatch {
            send_within: Duration::from_millis(20),
            ..DELIVERY_BY_DELIVERY
        };
        let bed = Bed::with(|settings| settings.otlp = Some(to)).await;
        bed.task("1").await.is(200);
        bed.until_counted("semel_spans_dropped_total{reason=\"not_taken\"} 4")
            .await;
        bed.counts("semel_spans_sent_total 0").await;
    }
}

#[tokio::test]
async fn what_waits_for_a_slow_receiver_is_bounded() {
    let (bed, receiver) = traced(|settings| {
        let otlp = settings.otlp.as_mut().unwrap();
        otlp.batch = SpanBatch {
            queue_max: 4,
            ..DELIVERY_BY_DELIVERY
        };
    })
    .await;
    receiver.will(Mood::Hangs);
    bed.task("1").await.is(200);
    receiver.asked(1).await;
    for name in ["2", "3"] {
        bed.task(name).await.is(200);
    }
    // Four are on their way to the receiver, four wait, four are too many.
    bed.until_counted("semel_spans_dropped_total{reason=\"queue_full\"} 4")
        .await;
}

#[tokio::test]
async fn what_may_be_sent_again_is_and_what_may_not_is_not() {
    for protocol in PROTOCOLS {
        let receiver = Receiver::start().await;
        let mut to = otlp(&receiver, protocol);
        to.batch = DELIVERY_BY_DELIVERY;
        let bed = Bed::with(|settings| settings.otlp = Some(to)).await;
        receiver.will(Mood::Refuses);
        bed.task("1").await.is(200);
        bed.until_counted("semel_spans_dropped_total{reason=\"not_taken\"} 4")
            .await;

        receiver.will(Mood::Overloaded);
        bed.task("2").await.is(200);
        bed.until_counted("semel_spans_sent_total 4").await;
        bed.counts("semel_spans_dropped_total{reason=\"not_taken\"} 4")
            .await;
        assert_eq!(receiver.so_far().len(), 4);
    }
}

#[tokio::test]
async fn the_end_of_a_gate_sends_what_is_queued() {
    for protocol in PROTOCOLS {
        let receiver = Receiver::start().await;
        let mut to = otlp(&receiver, protocol);
        to.batch.delay = Duration::from_secs(3600);
        let bed = Bed::with(|settings| settings.otlp = Some(to)).await;
        bed.task("1").await.is(200);
        assert!(receiver.so_far().is_empty());
        let (served, ..) = bed.stop();
        within("the end", served).await.unwrap();
        assert_eq!(receiver.so_far().len(), 4);
    }
}

#[tokio::test]
async fn the_end_of_a_gate_waits_for_no_receiver_longer_than_its_grace() {
    let (bed, receiver) = traced(|settings| {
        settings.grace = Duration::from_millis(100);
        settings.otlp.as_mut().unwrap().batch.delay = Duration::from_secs(3600);
    })
    .await;
    receiver.will(Mood::Hangs);
    bed.task("1").await.is(200);
    let begun = Instant::now();
    let (served, ..) = bed.stop();
    within("the end", served).await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    assert!(receiver.so_far().is_empty());
}
