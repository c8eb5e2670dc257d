-- $1 key  $2 fence  $3 owner  $4 result.  Inside the caller's transaction, whose COMMIT waits for the disk as that of semel.complete does; the
-- retention is the one it had. No row: look, then roll back
UPDATE semel.rec r SET state = 2, result = $4::bytea, lease_until = clock_timestamp(),
       expires_at = GREATEST(r.expires_at, clock_timestamp() + (r.expires_at - r.lease_until),
                             (SELECT n.expires_at FROM semel.renewal n WHERE n.key = r.key AND n.fence = r.fence))
  FROM (SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply'
                                                                                          ELSE 'on' END, true) OFFSET 0) AS local
 WHERE r.key = $1::bytea AND r.fence = $2::bigint AND r.owner = $3::uuid AND r.state IN (1, 5)
RETURNING r.state
