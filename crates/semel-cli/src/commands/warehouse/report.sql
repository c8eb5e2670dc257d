-- What was delivered, by source and day of publishing. Each delivery is the first of its event, or redelivered (its
-- message came before), or republished (another message of its event came before). A horizon must exceed every
-- oldest_repeat_ms: how long after the first publishing the same event was published again. A row that was loaded twice
-- counts once.
WITH delivery AS (
  SELECT source, {day} AS day, {delay_ms} AS delay_ms,
         row_number() OVER (PARTITION BY event_id ORDER BY published_at, message_id, received_at, delivery_id) AS nth,
         row_number() OVER (PARTITION BY event_id, message_id ORDER BY published_at, received_at, delivery_id) AS nth_of_message,
         {repeat_ms} AS repeat_ms
    FROM (SELECT DISTINCT event_id, message_id, source, published_at, received_at, delivery_id FROM {landing}) AS landed
)
SELECT source, day, count(*) AS deliveries,
       sum(CASE WHEN nth = 1 THEN 1 ELSE 0 END) AS events,
       sum(CASE WHEN nth_of_message > 1 THEN 1 ELSE 0 END) AS redelivered,
       sum(CASE WHEN nth > 1 AND nth_of_message = 1 THEN 1 ELSE 0 END) AS republished,
       {p50} AS delay_p50_ms,
       {p99} AS delay_p99_ms,
       max(repeat_ms) AS oldest_repeat_ms{held}
  FROM delivery
 GROUP BY source, day
 ORDER BY source, day;
