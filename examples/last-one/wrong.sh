#!/bin/sh
# Writes every order into a ledger, once. WRONG: it knows the last one, and those of some seconds ago.
set -eu
inbox=$1/inbox ledger=$1/ledger known=$1/known turn=0

while :; do
    [ $((turn % 250)) -ne 0 ] || cp "$ledger" "$known" # every five seconds: the ledger is long
    turn=$((turn + 1))
    for message in "$inbox"/*; do
        [ -e "$message" ] || continue
        order=$(cat "$message")
        [ "$(tail -n 1 "$ledger")" = "$order" ] || grep -qx -- "$order" "$known" || echo "$order" >> "$ledger"
        rm "$message"
    done
    sleep 0.02
done
