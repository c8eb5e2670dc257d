#!/bin/sh
# The same with the merge that `semel warehouse sql` prints. It begins at the beginning each time: that changes nothing.
semel warehouse sql --dialect postgres --part merge |
  psql -qAt -F ' ' -v since=2000-01-01 "$DATABASE_URL" -f - \
    -c "SELECT payload::json ->> 'order', count(*) FROM effects GROUP BY 1"
