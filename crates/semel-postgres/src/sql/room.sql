-- No parameters.  Takes some room on the disk and gives it back: asked after a write found none
CREATE TEMPORARY TABLE semel_room ON COMMIT DROP AS SELECT i, repeat('x', 1000) AS x FROM generate_series(1, 64) i
