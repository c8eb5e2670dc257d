-- $1 key.  Plain read. No row: absent. A row that is not parked and whose expires_at <= now is expired: absent, too
SELECT r.fence, r.born, r.attempts, r.state, r.owner,
       GREATEST(r.lease_until, CASE WHEN r.state = 1 THEN n.lease_until END) AS lease_until,
       GREATEST(r.expires_at, n.expires_at) AS expires_at, r.fp, r.result, clock_timestamp() AS now,
       r.doubts, r.in_doubt, r.acts_until, r.doubted_at
  FROM semel.rec r LEFT JOIN semel.renewal n ON n.key = r.key AND n.fence = r.fence WHERE r.key = $1::bytea
