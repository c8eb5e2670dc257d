-- Labels are looked up by the moment their incarnation began. Few begin in the same one, so the key need not be in the index: entries
-- then go to its end, in the order of time, instead of to a page of their own each. (key, born) is unique without it: it is
-- written by the grant that begins the incarnation.
CREATE INDEX IF NOT EXISTS label_born ON semel.label (born);
ALTER TABLE semel.label DROP CONSTRAINT IF EXISTS label_pkey;
