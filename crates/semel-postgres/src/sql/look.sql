-- $1 key.  Plain read. No row: absent. A row that is not parked and whose expires_at <= now is expired: absent, too
SELECT r.fence, r.born, r.attempts, r.state, r.owner, r.lease_until, r.expires_at, r.fp, r.result, clock_timestamp() AS now
  FROM semel.rec r WHERE r.key = $1::bytea
