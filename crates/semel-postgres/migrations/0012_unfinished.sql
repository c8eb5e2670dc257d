-- The first doubt of an incarnation: how long ago it was is a part of the limit on runs in doubt. NULL: no run ended in doubt, or it did under an
-- earlier schema; then the next doubt is the first. With no default, so that nothing is rewritten; without an index, so that updates stay in place (HOT).
ALTER TABLE semel.rec ADD COLUMN IF NOT EXISTS doubted_at timestamptz;
-- An operator was alerted: no further delivery of the letter's work is expected.
ALTER TABLE semel.letter ADD COLUMN IF NOT EXISTS alarmed boolean NOT NULL DEFAULT false;
-- reason: 5 unfinished (its work has not succeeded, and its sender may not deliver it again) takes the place of two
ALTER TABLE semel.letter DROP CONSTRAINT IF EXISTS letter_reason_check;
UPDATE semel.letter SET reason = 5 WHERE reason = 6;
ALTER TABLE semel.letter ADD CONSTRAINT letter_reason_check CHECK (reason BETWEEN 1 AND 5);
-- semel.renewal also has the retention that a keeper prolonged, of a record in any state: its lease_until then is the record's own.
