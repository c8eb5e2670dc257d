-- A part of the statement that shows a record: its latest eight superseded attempts, the oldest first
SELECT array_agg(h.fence ORDER BY h.fence, h.at) AS fences, array_agg(h.state ORDER BY h.fence, h.at) AS states,
       array_agg(h.in_doubt ORDER BY h.fence, h.at) AS doubts_in, array_agg(h.until ORDER BY h.fence, h.at) AS untils,
       array_agg(h.at ORDER BY h.fence, h.at) AS ats, array_agg(h.who ORDER BY h.fence, h.at) AS whos,
       array_agg(h.result ORDER BY h.fence, h.at) AS results
  FROM (SELECT * FROM semel.history h WHERE h.key = $1::bytea AND h.born = r.born ORDER BY h.fence DESC, h.at DESC LIMIT 8) h
