#!/bin/sh
# Writes requirements/*.txt: every dependency with its version and the hashes of its files, for all platforms and for
# Python 3.11 to 3.13. Addresses of indexes are not written: pip takes the files from its configured index and refuses
# files with a different hash.
# `make lock` runs this script with UV set to the program uv.
set -eu
cd "$(dirname "$0")/.."

compile() {
	output=$1
	shift
	"$UV" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-markers \
		--upgrade --custom-compile-command "make lock" --output-file "requirements/$output" "$@"
}

echo 'pip>=25.1' | compile pip.txt -
echo 'uv>=0.13' | compile lock-tools.txt -
# `run`: packages of an installation. `build`: packages to build it. `dev`: both, and packages for tests and checks.
compile run.txt pyproject.toml
compile build.txt --group build --constraints requirements/run.txt
compile dev.txt pyproject.toml --group build --group dev --constraints requirements/run.txt --constraints requirements/build.txt
compile peers.txt bench/peers.txt
compile strands.txt tests/peers/python/strands.txt
compile jupyterlab.txt tests/peers/python/jupyterlab.txt
compile crewai.txt tests/peers/python/crewai.txt
compile a2a-kits.txt scripts/conformance/a2a-kits.txt
# `floors`: the lowest version of each direct dependency.
compile floors.txt pyproject.toml --group build --group unit-tests --resolution lowest-direct
