#!/bin/sh
# As a scheduler does it: merges what has landed. Then shows how many rows each order has.
psql -qAt -F ' ' "$DATABASE_URL" -f "$(dirname "$0")/wrong.sql" -c "SELECT order_id, count(*) FROM merged GROUP BY 1"
