# Unpacks Debian packages below $folder without root; a script that has set $folder reads this file with `.`.
# The unpacked files are then in $scratch/unpacked; $scratch is removed when the script ends.
# The script must define the function give_up, which takes a reason and ends the script.
# shellcheck shell=sh

[ "$(uname -s)" = Linux ] || give_up "it works only on Linux"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || give_up "this machine has no apt"

scratch=$(mktemp -d "$folder/fetching.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/lists/partial" "$scratch/archives/partial" "$scratch/unpacked"

# apt with the sources of this machine, as the current user: apt's user _apt could not write into the folder.
fetch() {
	(cd "$scratch" && apt-get -q -o APT::Sandbox::User="$(id -un)" -o Dir::Cache="$scratch" -o Debug::NoLocking=true \
		"$@" >"$scratch/log" 2>&1)
}
# The same with separate package lists.
fetch_own() {
	fetch -o Dir::State="$scratch" -o Dir::State::status=/var/lib/dpkg/status "$@"
}

# Fetches and unpacks the packages that a command of apt-get downloads: `download PACKAGE` only that package,
# `install --download-only PACKAGE` also its missing dependencies.
unpack_packages() {
	# If the system has no lists or old ones, fetch them into a separate folder.
	fetch "$@" || { fetch_own update && fetch_own "$@"; } || give_up "apt failed: $(tail -n 3 "$scratch/log" | tr '\n' ' ')"
	for package in "$scratch"/*.deb "$scratch"/archives/*.deb; do
		if [ -e "$package" ]; then dpkg-deb -x "$package" "$scratch/unpacked"; fi
	done
}
