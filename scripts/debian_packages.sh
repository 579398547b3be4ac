# To be read with `.` by a script that has set $folder: unpacks Debian packages below it, without root.
# Afterwards the caller has $scratch, a folder that goes away with it, with what was unpacked in $scratch/unpacked.
# It has the function give_up, which takes a reason and ends the script.
# shellcheck shell=sh

[ "$(uname -s)" = Linux ] || give_up "it is for Linux alone"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || give_up "there is no apt here"

scratch=$(mktemp -d "$folder/fetching.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/lists/partial" "$scratch/archives/partial" "$scratch/unpacked"

# apt with the sources of this machine; its user _apt could not write into the folder.
fetch() {
	(cd "$scratch" && apt-get -q -o APT::Sandbox::User="$(id -un)" -o Dir::Cache="$scratch" -o Debug::NoLocking=true \
		"$@" >"$scratch/log" 2>&1)
}
# The same with package lists of our own.
fetch_own() {
	fetch -o Dir::State="$scratch" -o Dir::State::status=/var/lib/dpkg/status "$@"
}

# Fetches and unpacks what a command of apt-get downloads: `download PACKAGE` that package alone,
# `install --download-only PACKAGE` also what it needs and this machine does not have.
unpack_packages() {
	# The system has no lists, or old ones: fetch them, into a folder of our own.
	fetch "$@" || { fetch_own update && fetch_own "$@"; } || give_up "apt said: $(tail -n 3 "$scratch/log" | tr '\n' ' ')"
	for package in "$scratch"/*.deb "$scratch"/archives/*.deb; do
		if [ -e "$package" ]; then dpkg-deb -x "$package" "$scratch/unpacked"; fi
	done
}
