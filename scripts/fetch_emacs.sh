#!/bin/sh
# Puts Emacs without a window system, an editor for tests, into the folder $1/bin, unless PATH has version 28 or newer.
# Needs no root: apt fetches the packages and the missing libraries, with separate lists if the system has none, and they
# are only unpacked. The script in $1/bin/emacs starts Emacs with the paths of its files; $1/bin/loaded-emacs does the same
# with libraries already loaded that the plugin and most tests load, which is more than half of its processor time.
# If that is impossible, it prints the reason and succeeds, because the other peers are useful without it.
set -eu

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

give_up() {
	echo "Emacs was not fetched: $1" >&2
	echo "The tests of the Emacs plugin need it; install 28 or newer so that it is on PATH (Debian, Ubuntu: apt install emacs-nox)." >&2
	exit 0
}
is_new_enough() {
	"$1" -Q --batch --eval '(kill-emacs (if (< emacs-major-version 28) 1 0))' >/dev/null 2>&1
}
# Saves an Emacs that has loaded libraries. Its compiled functions are found from the folder of its program. An Emacs that
# runs as a batch has turned off what only users need: that is as at the start of any other Emacs again.
write_loaded() {
	rm -f "$folder/loaded.pdmp.new"
	"$folder/bin/emacs" -Q --batch --eval "(progn
		(mapc #'require '(server cl-lib json project python ring subr-x url-util))
		(when (fboundp 'native-comp-unit-set-file)
			(let (units)
				(mapatoms (lambda (symbol)
					(let ((function (symbol-function symbol)))
						(when (subr-native-elisp-p function) (push (subr-native-comp-unit function) units)))))
				(dolist (unit (delete-dups units))
					(let ((file (file-relative-name (native-comp-unit-file unit) invocation-directory)))
						(native-comp-unit-set-file unit (cons file file))))))
		(setq custom-delayed-init-variables '(temporary-file-directory transient-mark-mode global-font-lock-mode blink-cursor-mode)
			menu-bar-mode t undo-outer-limit 24000000 byte-compile-verbose t)
		(dump-emacs-portable \"$folder/loaded.pdmp.new\"))" >/dev/null 2>&1 || return 0
	sed '$s|--dump-file=[^ ]* .*|--dump-file="${bin%/bin}/loaded.pdmp" "$@"|' "$folder/bin/emacs" >"$folder/bin/loaded-emacs.new"
	chmod +x "$folder/bin/loaded-emacs.new"
	mv "$folder/loaded.pdmp.new" "$folder/loaded.pdmp"
	if is_new_enough "$folder/bin/loaded-emacs.new"; then
		mv "$folder/bin/loaded-emacs.new" "$folder/bin/loaded-emacs"
	else
		rm "$folder/bin/loaded-emacs.new" "$folder/loaded.pdmp"
		echo "The tests of the Emacs plugin start an Emacs that loads its libraries each time: they cannot be saved with it." >&2
	fi
}

if command -v emacs >/dev/null && is_new_enough emacs; then
	echo "Emacs is on PATH: $(command -v emacs)"
	exit 0
fi
if [ -x "$folder/bin/emacs" ] && is_new_enough "$folder/bin/emacs"; then
	[ -x "$folder/bin/loaded-emacs" ] && is_new_enough "$folder/bin/loaded-emacs" || write_loaded
	exit 0
fi

. "$(dirname "$0")/debian_packages.sh"

unpack_packages install --download-only --yes --no-install-recommends emacs-nox
[ -x "$scratch/unpacked/usr/bin/emacs-nox" ] || give_up "the packages are installed, but emacs is not on PATH, or is older than 28"

mkdir "$scratch/unpacked/bin"
cat >"$scratch/unpacked/bin/emacs" <<'END'
#!/bin/sh
# Written by fetch_emacs.sh: starts Emacs in a folder other than the one for which it was built.
bin=$(dirname "$(readlink -f "$0")")
usr=${bin%/bin}/usr
share=$(echo "$usr"/share/emacs/[0-9]*)
EMACSPATH=$(echo "$usr"/libexec/emacs/*/*)
EMACSLOADPATH=$share/lisp
EMACSDATA=$share/etc
EMACSDOC=$share/etc
LD_LIBRARY_PATH=$(echo "$usr"/lib/*-linux-gnu*)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export EMACSPATH EMACSLOADPATH EMACSDATA EMACSDOC LD_LIBRARY_PATH
exec "$usr/bin/emacs-nox" --dump-file="$(echo "$EMACSPATH"/*.pdmp)" "$@"
END
chmod +x "$scratch/unpacked/bin/emacs"
is_new_enough "$scratch/unpacked/bin/emacs" || give_up "the fetched Emacs does not run on this machine, or is older than 28"
rm -rf "$folder/bin" "$folder/usr"
rm -rf "$scratch/unpacked/usr/share/doc" "$scratch/unpacked/usr/share/info" "$scratch/unpacked/usr/share/man"
mv "$scratch/unpacked/usr" "$folder/usr"
mv "$scratch/unpacked/bin" "$folder/bin"
write_loaded
echo "Emacs: $("$folder/bin/emacs" --version | head -n 1), in $folder/bin"
