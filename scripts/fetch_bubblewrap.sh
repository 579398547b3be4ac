#!/bin/sh
# Puts bubblewrap (bwrap), the sandbox that tests run programs in, into the folder $1/bin, unless it is on PATH already.
# Needs no root: the package is fetched by apt, with lists of its own when the system has none, and only unpacked. Its
# libraries are those that apt and dpkg need themselves.
# Where that cannot be done it says so and succeeds: the other peers are of use without it.
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
"$folder/bin/bwrap" --version >/dev/null || give_up "what was fetched does not run here"
echo "bubblewrap: $("$folder/bin/bwrap" --version), in $folder/bin"
