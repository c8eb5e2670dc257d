-- A letter knows its route (quotas, lists), the fence of its key's record when it was put (only a higher one reopens it), how
-- long its tombstone stays, and whether it was redriven. Open: expires_at is null. Closed: expires_at is set, delivery is empty.
-- Letters of before have no route here; the delivery itself names it.
ALTER TABLE semel.letter ADD COLUMN IF NOT EXISTS route text NOT NULL DEFAULT '';
ALTER TABLE semel.letter ADD COLUMN IF NOT EXISTS fence bigint NOT NULL DEFAULT 0;
ALTER TABLE semel.letter ADD COLUMN IF NOT EXISTS retention_us bigint NOT NULL DEFAULT 604800000000;
ALTER TABLE semel.letter ADD COLUMN IF NOT EXISTS redriven boolean NOT NULL DEFAULT false;
ALTER TABLE semel.letter ADD COLUMN IF NOT EXISTS expires_at timestamptz;
DROP INDEX IF EXISTS semel.letter_created;
CREATE INDEX IF NOT EXISTS letter_open ON semel.letter (created_at, id) WHERE expires_at IS NULL;
CREATE INDEX IF NOT EXISTS letter_closed ON semel.letter (expires_at) WHERE expires_at IS NOT NULL;
