-- WRONG: merges landed rows as they are. Two deliveries of one order are two rows of the source; where the target has
-- none of them yet, both are "not matched", and both are inserted. No error says so.
MERGE INTO merged AS t
USING (SELECT payload::json ->> 'order' AS order_id, payload FROM landing) AS s
ON t.order_id = s.order_id
WHEN NOT MATCHED THEN INSERT (order_id, payload) VALUES (s.order_id, s.payload);
