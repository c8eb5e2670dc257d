#!/bin/sh
# Each order in the outbox, and in how many files it is.
cat "$1"/outbox/* 2> /dev/null | sort | uniq -c | while read -r count order; do echo "$order $count"; done
