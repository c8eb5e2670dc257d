-- reason: also 5 running (its run outlasts its sender), 6 exhausted (its sender does not deliver it again)
ALTER TABLE semel.letter DROP CONSTRAINT IF EXISTS letter_reason_check;
ALTER TABLE semel.letter ADD CONSTRAINT letter_reason_check CHECK (reason BETWEEN 1 AND 6);
