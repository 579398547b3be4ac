#!/bin/sh
# Puts PgBouncer, a connection pool for tests, into the folder $1/bin, unless it is on PATH.
# Needs no root: apt fetches the packages and the missing libraries, with separate lists if the system has none, and they
# are only unpacked. The script in $1/bin starts PgBouncer with the path of its libraries.
# If that is impossible, it prints the reason and succeeds, because the other peers are useful without it.
set -eu

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

give_up() {
	echo "PgBouncer was not fetched: $1" >&2
	echo "The tests of a journal behind a connection pool need it; install it so that it is on PATH (Debian, Ubuntu: apt install pgbouncer)." >&2
	exit 0
}

if command -v pgbouncer >/dev/null; then
	echo "PgBouncer is on PATH: $(command -v pgbouncer)"
	exit 0
fi
if [ -x "$folder/bin/pgbouncer" ] && "$folder/bin/pgbouncer" --version >/dev/null 2>&1; then
	exit 0
fi

. "$(dirname "$0")/debian_packages.sh"

unpack_packages install --download-only --yes --no-install-recommends pgbouncer
[ -x "$scratch/unpacked/usr/sbin/pgbouncer" ] || give_up "the packages are installed, but pgbouncer is not on PATH"

mkdir "$scratch/unpacked/bin"
cat >"$scratch/unpacked/bin/pgbouncer" <<'END'
#!/bin/sh
# Written by fetch_pgbouncer.sh: starts PgBouncer with its libraries, in a folder other than the one for which it was built.
bin=$(dirname "$(readlink -f "$0")")
usr=${bin%/bin}/usr
LD_LIBRARY_PATH=$(echo "$usr"/lib/*-linux-gnu*)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$usr/sbin/pgbouncer" "$@"
END
chmod +x "$scratch/unpacked/bin/pgbouncer"
"$scratch/unpacked/bin/pgbouncer" --version >/dev/null 2>&1 || give_up "the fetched PgBouncer does not run on this machine"
rm -rf "$folder/bin" "$folder/usr"
rm -rf "$scratch/unpacked/usr/share"
mv "$scratch/unpacked/usr" "$folder/usr"
mv "$scratch/unpacked/bin" "$folder/bin"
echo "PgBouncer: $("$folder/bin/pgbouncer" --version | head -n 1), in $folder/bin"
