-- The same rows as {effects} has when everything is merged, without a merge.
CREATE OR REPLACE VIEW {effects}_view AS
SELECT {columns}
  FROM {source}
 WHERE TRUE
QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY {order}) = 1;
