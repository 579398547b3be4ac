#!/bin/sh
# Unpacks the packages of tests/fuzz/debian_packages.txt, and what they need, into the folder $1. Needs no root.
set -eu

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
list=$(cd "$(dirname "$0")/.." && pwd)/tests/fuzz/debian_packages.txt

give_up() {
	echo "the programs were not fetched: $1" >&2
	exit 1
}

. "$(dirname "$0")/debian_packages.sh"

# shellcheck disable=SC2046
unpack_packages install --download-only --no-install-recommends --reinstall -y $(grep -v '^#' "$list")
cp -a "$scratch/unpacked/." "$folder"
echo "$(find "$folder/usr/bin" -type f | wc -l) programs, in $folder"
