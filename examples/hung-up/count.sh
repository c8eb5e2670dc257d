#!/bin/sh
# Each order of the ledger, and how often it is there.
[ ! -e "$1/ledger" ] || sort "$1/ledger" | uniq -c | while read -r count order; do echo "$order $count"; done
