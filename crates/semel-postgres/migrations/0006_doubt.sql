-- What is known of a run in doubt: how many of this incarnation ended so, whether the last one did, and until when it may still act
-- (null: its claim did not say). With defaults, so that nothing is rewritten; without an index, so that updates stay in place (HOT).
-- A gate of the earlier schema neither counts nor asks: bring all gates up before a route probes or limits runs in doubt.
ALTER TABLE semel.rec ADD COLUMN IF NOT EXISTS doubts integer NOT NULL DEFAULT 0;
ALTER TABLE semel.rec ADD COLUMN IF NOT EXISTS in_doubt boolean NOT NULL DEFAULT false;
ALTER TABLE semel.rec ADD COLUMN IF NOT EXISTS acts_until timestamptz;
