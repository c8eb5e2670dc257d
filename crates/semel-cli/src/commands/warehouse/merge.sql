-- Merges what was received since `since`, {variable}. However the deliveries are divided,
-- ordered or repeated, all merges together end in the same table. Let no two merges run at once. `since` is where the
-- last merge began, less an overlap: a row is committed later than it was received.
{bounds}MERGE INTO {effects} AS t
USING (
  SELECT {columns}
    FROM {source}
   WHERE received_at >= {since}
  QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY {order}) = 1
) AS s
ON t.event_id = s.event_id{within}
WHEN MATCHED AND {precedes} THEN UPDATE SET
  {assignments}
WHEN NOT MATCHED THEN INSERT ({columns})
  VALUES ({values});
