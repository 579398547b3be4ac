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

[ "$(uname -s)" = Linux ] || give_up "it is for Linux alone"
if command -v bwrap >/dev/null; then
	echo "bubblewrap is on PATH: $(command -v bwrap)"
	exit 0
fi
if [ -x "$folder/bin/bwrap" ] && "$folder/bin/bwrap" --version >/dev/null 2>&1; then
	exit 0
fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || give_up "there is no apt here"

scratch=$(mktemp -d "$folder/fetching.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/lists/partial" "$scratch/archives/partial" "$scratch/root"

# apt with the sources of this machine; its user _apt could not write into the folder.
fetch() {
	(cd "$scratch" && apt-get -q -o APT::Sandbox::User="$(id -un)" -o Dir::Cache="$scratch" -o Debug::NoLocking=true "$@")
}
fetch_own() {
	fetch -o Dir::State="$scratch" -o Dir::State::status=/dev/null "$@"
}
download() {
	fetch download bubblewrap >"$scratch/log" 2>&1 && return
	# The system has no lists, or old ones: fetch them, into a folder of our own.
	fetch_own update >"$scratch/log" 2>&1 && fetch_own download bubblewrap >"$scratch/log" 2>&1
}

download || give_up "apt said: $(tail -n 3 "$scratch/log" | tr '\n' ' ')"
dpkg-deb -x "$scratch"/bubblewrap_*.deb "$scratch/root"
rm -rf "$folder/bin"
mv "$scratch/root/usr/bin" "$folder/bin"
"$folder/bin/bwrap" --version >/dev/null || give_up "what was fetched does not run here"
echo "bubblewrap: $("$folder/bin/bwrap" --version), in $folder/bin"
