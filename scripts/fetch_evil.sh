#!/bin/sh
# Puts Evil, the vi layer of Emacs, into the folder $1/evil for tests, in Lisp that is not compiled: any version loads it.
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

if [ -e "$folder/evil/evil.el" ] && [ -e "$folder/evil/goto-chg.el" ]; then
	exit 0
fi

. "$(dirname "$0")/debian_packages.sh"

unpack_packages download elpa-evil elpa-goto-chg
mkdir "$scratch/evil"
cp "$scratch"/unpacked/usr/share/emacs/site-lisp/elpa-src/evil-*/*.el \
	"$scratch"/unpacked/usr/share/emacs/site-lisp/elpa-src/goto-chg-*/*.el "$scratch/evil" ||
	give_up "the packages do not have their files where they were"
rm -rf "$folder/evil"
mv "$scratch/evil" "$folder/evil"
echo "Evil: $(sed -n 's/^;; Version: //p' "$folder/evil/evil.el"), in $folder/evil"
