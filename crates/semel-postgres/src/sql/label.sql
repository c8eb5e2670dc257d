-- $7 label.  A part of the statements that claim one key, where the claim has a label
INSERT INTO semel.label (key, born, label) SELECT w.key, w.fence, $7::bytea FROM win w
