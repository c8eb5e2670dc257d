-- A part of the statements that supersede an attempt.  d has a row for each: key, born, was_fence, was, was_in_doubt, was_until, was_result, who.
-- The eighth of those that were there makes room; a row more, from a race with another statement's snapshot, is not shown
, h AS (
  INSERT INTO semel.history (key, born, fence, at, state, in_doubt, until, who, result)
  SELECT d.key, d.born, d.was_fence, clock_timestamp(), d.was, d.was_in_doubt, d.was_until, d.who, d.was_result FROM d
  ON CONFLICT DO NOTHING                -- nobody is kept from running by a history
), o AS (
  DELETE FROM semel.history x USING d
   WHERE x.key = d.key AND x.born = d.born
     AND (x.fence, x.at) <= (SELECT y.fence, y.at FROM semel.history y WHERE y.key = d.key AND y.born = d.born
                              ORDER BY y.fence DESC, y.at DESC OFFSET 7 LIMIT 1)
)
