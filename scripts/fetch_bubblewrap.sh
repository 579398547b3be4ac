#!/bin/sh
# Puts bubblewrap (bwrap), the sandbox of programs in tests, into the folder $1/bin, unless it is already on PATH.
# Needs no root: apt fetches the package, with separate lists if the system has none, and the package is only unpacked.
# It needs only libraries that apt and dpkg need, too.
# If that is impossible, it prints the reason and succeeds, because the other peers are useful without it.
set -eu

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

give_up() {
	echo "bubblewrap was not fetched: $1" >&2
	echo "The tests of the sandbox need it; install it so that bwrap is on PATH (Debian, Ubuntu: apt install bubblewrap)." >&2
	exit 0
}

if command -v bwrap >/dev/null; then
	echo "bubblewrap is on PATH: $(command -v bwrap)"
	exit 0
fi
if [ -x "$folder/bin/bwrap" ] && "$folder/bin/bwrap" --version >/dev/null 2>&1; then
	exit 0
fi

. "$(dirname "$0")/debian_packages.sh"

unpack_packages download bubblewrap
rm -rf "$folder/bin"
mv "$scratch/unpacked/usr/bin" "$folder/bin"
"$folder/bin/bwrap" --version >/dev/null || give_up "the fetched program does not run on this machine"
echo "bubblewrap: $("$folder/bin/bwrap" --version), in $folder/bin"
