-- No parameters.  Writes the one row of semel.ready; a row that another gate writes at this moment is as good
INSERT INTO semel.ready AS r (at) VALUES (clock_timestamp()) ON CONFLICT (one) DO UPDATE SET at = EXCLUDED.at, room = NULL
