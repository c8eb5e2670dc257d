#!/bin/sh
# Writes every order into a ledger, once: it looks through the whole ledger.
set -eu
inbox=$1/inbox ledger=$1/ledger

while :; do
    for message in "$inbox"/*; do
        [ -e "$message" ] || continue
        order=$(cat "$message")
        grep -qx -- "$order" "$ledger" || echo "$order" >> "$ledger"
        rm "$message"
    done
    sleep 0.02
done
