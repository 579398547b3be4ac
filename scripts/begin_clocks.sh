#!/bin/sh
# Runs a command, and all that it starts, as on a machine that was started $1 seconds ago, in a time namespace of Linux:
#   sh scripts/begin_clocks.sh 5 .venv/bin/python -m pytest tests/peers/neovim
# Only the monotonic clock and that of the time since the start change; files and the clock of the day are as they were.
# Needs root, or a kernel that allows user namespaces; otherwise it says so and fails.
set -eu

origin=$1
shift
monotonic=$(python3 -c 'import time; print(int(time.monotonic()))')
since_start=$(cut -d . -f 1 /proc/uptime) # counts the time in which the machine was suspended, too

if [ "$(id -u)" = 0 ]; then user=""; else user="--user --map-current-user"; fi
# The kernel adds these numbers to its own clocks.
# shellcheck disable=SC2086 # two options or none
exec unshare $user --time --fork --kill-child \
	--monotonic=$((origin - monotonic)) --boottime=$((origin - since_start)) "$@"
