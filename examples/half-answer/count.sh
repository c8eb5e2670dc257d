#!/bin/sh
# Each order, and how often the journal says that it was written.
[ -e "$1/journal" ] || exit 0
sed -n 's/^written //p' "$1/journal" | sort | uniq -c | while read -r count order; do echo "$order $count"; done
