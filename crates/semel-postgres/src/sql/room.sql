-- No parameters.  Takes some room on the disk, where records are; the next `ready` gives it back. Asked after a write found none
INSERT INTO semel.ready AS r (at, room)
SELECT clock_timestamp(), string_agg(md5(random()::text), '') FROM generate_series(1, 2048)
ON CONFLICT (one) DO UPDATE SET at = EXCLUDED.at, room = EXCLUDED.room
