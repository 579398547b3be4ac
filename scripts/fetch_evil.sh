#!/bin/sh
# Puts Evil, the vi layer of Emacs, into the folder $1/evil for tests, compiled by the Emacs in $1 or that on PATH:
# as source it takes seconds to load. A compiled file is only used by the Emacs that made it.
# Needs no root: apt fetches the packages, with separate lists if the system has none, and they are only unpacked.
# If that is impossible, it prints the reason and succeeds, because the other peers are useful without it.
set -eu

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

give_up() {
	echo "Evil was not fetched: $1" >&2
	echo "The tests of reviews under a vi layer in Emacs need it (Debian, Ubuntu: elpa-evil, elpa-goto-chg)." >&2
	exit 0
}

emacs=$folder/bin/emacs
[ -x "$emacs" ] || emacs=emacs
version=$("$emacs" --version 2>/dev/null | head -n 1) || version=
if [ -e "$folder/evil/evil.el" ] && [ "$(cat "$folder/evil/compiled-by" 2>/dev/null)" = "$version" ]; then
	exit 0
fi

. "$(dirname "$0")/debian_packages.sh"

unpack_packages download elpa-evil elpa-goto-chg
mkdir "$scratch/evil"
cp "$scratch"/unpacked/usr/share/emacs/site-lisp/elpa-src/evil-*/*.el \
	"$scratch"/unpacked/usr/share/emacs/site-lisp/elpa-src/goto-chg-*/*.el "$scratch/evil" ||
	give_up "the packages do not have their files where they were"
"$emacs" --batch -Q -L "$scratch/evil" -f batch-byte-compile "$scratch"/evil/*.el >/dev/null 2>&1 ||
	echo "Evil was not compiled: its tests will take longer." >&2
printf '%s\n' "$version" >"$scratch/evil/compiled-by"
rm -rf "$folder/evil"
mv "$scratch/evil" "$folder/evil"
echo "Evil: $(sed -n 's/^;; Version: //p' "$folder/evil/evil.el"), in $folder/evil"
