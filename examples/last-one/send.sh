#!/bin/sh
# Puts a message into the worker's inbox and waits until the worker has taken it away.
set -eu
inbox=$1/inbox id=$2
message=$inbox/$id.$$
echo "$id" > "$1/$id.$$.new"
mv "$1/$id.$$.new" "$message"
while [ -e "$message" ]; do sleep 0.02; done
