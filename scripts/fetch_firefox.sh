#!/bin/sh
# Puts Firefox into the folder $1, for `make engines`. Needs no root: apt fetches the package and its missing libraries, and
# they are only unpacked. If that is impossible, it prints the reason and succeeds.
set -eu

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

give_up() {
	echo "Firefox was not fetched: $1" >&2
	exit 0
}

if [ -x "$folder/usr/lib/firefox-esr/firefox-esr" ]; then exit 0; fi

. "$(dirname "$0")/debian_packages.sh"

unpack_packages install --download-only --yes --no-install-recommends firefox-esr
rm -rf "$folder/usr" "$scratch/unpacked/usr/share/doc" "$scratch/unpacked/usr/share/man"
mv "$scratch/unpacked/usr" "$folder/usr"
