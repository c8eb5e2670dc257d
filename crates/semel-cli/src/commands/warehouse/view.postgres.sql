-- The same rows as {effects} has when everything is merged, without a merge.
CREATE OR REPLACE VIEW {effects}_view AS
SELECT DISTINCT ON (event_id) {columns}
  FROM {source}
 ORDER BY event_id, {order};
