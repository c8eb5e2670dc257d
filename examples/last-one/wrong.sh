#!/bin/sh
# Writes every order into a ledger, once. WRONG: it only knows the last one.
set -eu
inbox=$1/inbox ledger=$1/ledger

while :; do
    for message in "$inbox"/*; do
        [ -e "$message" ] || continue
        order=$(cat "$message")
        [ "$(tail -n 1 "$ledger")" = "$order" ] || echo "$order" >> "$ledger"
        rm "$message"
    done
    sleep 0.02
done
