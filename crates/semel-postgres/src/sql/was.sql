-- A part of the statements that supersede an attempt: how the locked record stands
r.born, r.state AS was, r.in_doubt OR r.state = 1 AS was_in_doubt, r.lease_until AS was_until, CASE WHEN r.state <> 1 THEN substr(r.result, 1, 96) END AS was_result
