#!/bin/sh
# Prepares compose.yaml: the wheel and the locked dependencies in dist/, secrets in secrets/, settings in .env.
# What exists is kept, except for dist/. Needs the checkout after `make setup frontend`.
#
#     sh deploy/prepare.sh agent.example.org /srv/isthmus/workspace
set -eu
if [ $# -ne 2 ] || [ "${2#/}" = "$2" ] || [ ! -d "$2" ]; then
	echo "usage: prepare.sh DOMAIN WORKSPACE: expected the name of the proxy, and the absolute path of a folder" >&2
	exit 2
fi
domain=$1
workspace=$2
cd "$(dirname "$0")"
python=../.venv/bin/python
umask 077

# Files in secrets/ must belong to the user of the containers, who must not be root.
uid=$(id -u)
[ "$uid" -ne 0 ] || uid=10001

rm -rf dist
mkdir -p dist secrets
"$python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ..
cp ../requirements/run.txt dist/
chmod -R go+rX dist

random() {
	"$python" -c 'import secrets; print(secrets.token_urlsafe(32))'
}
[ -e secrets/token ] || random >secrets/token
[ -e secrets/metrics-token ] || random >secrets/metrics-token
[ -e secrets/database-password ] || random >secrets/database-password
[ -e secrets/pgpass ] || printf '*:*:*:*:%s\n' "$(cat secrets/database-password)" >secrets/pgpass
[ -e secrets/model.env ] || echo '# Keys of the model, such as GEMINI_API_KEY=...' >secrets/model.env
[ -e .env ] || cat >.env <<END
ISTHMUS_DOMAIN=$domain
ISTHMUS_WORKSPACE=$workspace
ISTHMUS_UID=$uid
END
if [ "$(id -u)" -eq 0 ]; then
	chown "$uid" secrets/token secrets/metrics-token secrets/pgpass secrets/model.env
	echo "Let the user $uid write to $workspace: chown -R $uid $workspace"
fi
echo "Write the model's key into $(pwd)/secrets/model.env, and start: docker compose -f $(pwd)/compose.yaml up --build -d"
