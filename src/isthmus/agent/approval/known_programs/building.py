"""Programs that build and test, and programs of containers, with the options that a permission covers."""

from isthmus.agent.approval.known_programs.tables import programs, sub_commands

_COMPILER = """writes -c -S -E -Wall -Wextra -Werror -Werror=* -Wno-* -Wpedantic -pedantic -Wshadow -Wconversion -w -v
-g -g0 -g1 -g2 -g3 -ggdb -O -O0 -O1 -O2 -O3 -Os -Og -Ofast -std=* -ansi -fPIC -fPIE -fsanitize=* -fno-* -fopenmp
-fstack-* -ffast-math -fsyntax-only -fdiagnostics-color -I* -D* -U* -l* -L* -m32 -m64 -march=* -mtune=* -pthread
-shared -static -x -M -MM -MP -MG -pipe --version --help @"""
_CARGO = """writes through +p:j:vqrF: --release --all --workspace --package --exclude --features --all-features
--no-default-features --lib --bins --bin --test --tests --example --examples --bench --benches --all-targets --jobs
--verbose --quiet --locked --offline --frozen --message-format --no-run --doc --profile --keep-going --no-fail-fast
--no-deps --check --nocapture --test-threads --ignored --include-ignored --exact --skip --show-output --open --fix
--allow-dirty --allow-staged --depth --edges --invert --duplicates --dry-run --dev --build --optional --precise
--aggressive --help"""
_GO = """writes -v -x -n -a -p=* -race -short -cover -covermode=* -count=* -run=* -bench=* -benchmem -benchtime=*
-timeout=* -tags=* -mod=* -json -failfast -parallel=* -cpu=* -list=* -shuffle=* -trimpath -vet=* -run -bench -count
-timeout -tags -parallel -u -m -t -d -f -json -fuzz=* -fuzztime=*"""
_CONTAINERS = """+aqfnlst:dv --all --quiet --filter --no-trunc --size --format --last --latest --digests --follow --tail
--since --until --timestamps --details --no-stream --type --force --volumes --time --signal --all-tags --help"""
_COMPOSE = """+dqtfvTVs --detach --build --no-build --no-deps --force-recreate --no-recreate --remove-orphans --wait
--quiet-pull --pull --no-start --timeout --volumes --rmi --follow --tail --timestamps --no-color --no-log-prefix --since
--services --status --all --quiet --format --stop --force --no-cache --parallel --renew-anon-volumes --scale
up down ps logs build pull push start stop restart rm images top config version port pause unpause create kill ls"""
_DEBHELPER = """writes +avisnp:N:X:P:V:m:u:A:r -p* -N* -X* -V* --verbose --no-act --package --no-package --arch --indep
--remaining-packages --exclude --tmpdir --name --with --version-info --no-scripts --keep-debug -a -i -s -v -n"""
_KUBERNETES = """+n:l:o:AwfLc:p --namespace --selector --output --all-namespaces --watch --show-labels --field-selector
--sort-by --no-headers --chunk-size --ignore-not-found --previous --since --tail --timestamps --container --follow
--prefix --all-containers --short --client --events --limits --recursive --api-version --containers --minify --raw"""


def _containers(program: str) -> dict[str, str]:
    networks = "ls list inspect create rm prune +qf --filter --format --driver"
    names = (
        "diff events history images info inspect kill logs pause port ps pull push restart rm rmi search start stats"
        " stop tag top unpause version"
    )
    return {
        **sub_commands(program, names, _CONTAINERS),
        **sub_commands(program, "network volume", networks),
        **sub_commands(program, "exec run", "each"),
        f"{program} compose": _COMPOSE,
    }


ROWS: dict[str, str] = {
    **programs("c++ cc clang clang++ g++ gcc", _COMPILER),
    "make": "= any +ksnBqpRrdwitj:l:O:WS --keep-going --silent --quiet --dry-run --just-print --always-make --question"
    " --print-data-base --no-builtin-rules --no-builtin-variables --debug --print-directory --no-print-directory"
    " --ignore-errors --touch --jobs --load-average --output-sync --trace --warn-undefined-variables --version --help",
    "ninja": "any +vj:k:l:n --verbose --quiet --version --help",
    "just": "any <1 +lnqv --list --summary --dry-run --quiet --verbose --evaluate --unstable --version --help",
    "autoreconf": "writes +fivs --force --install --verbose --symlink --make --version --help",
    **sub_commands(
        "cargo",
        "add bench build check clean clippy doc fetch fmt metadata generate-lockfile nextest remove search test tree"
        " update vendor verify-project version",
        _CARGO,
    ),
    "cargo run": "args --release --all-features --no-default-features --verbose --quiet --locked --offline --frozen"
    " +qvr",
    **sub_commands("go", "build clean doc fmt get install list test vet version", _GO),
    "go env": "-json -changed",
    "go mod": "writes tidy download verify graph why vendor init -v -x -m -compat=* -go=* -json -vendor -diff -e",
    "go generate": "-v -x -n -run=* -skip=*",
    "go run": "args -v -x -race -tags=* -mod=* -trimpath",
    "go tool": "any cover pprof -func=* -html=*",
    "gradle": "any +qidsSx:am --quiet --info --debug --stacktrace --full-stacktrace --no-daemon --offline --continue"
    " --parallel --no-parallel --rerun-tasks --build-cache --no-build-cache --dry-run --tests --exclude-task --console"
    " --scan --no-scan --warning-mode --refresh-dependencies --version --help",
    "mvn": "any -q -B -o -U -e -X -V -N -DskipTests -DskipTests=* -Dtest=* -Dmaven.test.skip=* -T* -pl -am -amd -fae"
    " -ff"
    " -fn -ntp --quiet --batch-mode --offline --update-snapshots --errors --projects --also-make --no-transfer-progress"
    " --version --help",
    **sub_commands(
        "dotnet",
        "add build clean format list pack publish remove restore sln test",
        "writes +c:v:f:r: --configuration --verbosity --framework --runtime --no-build --no-restore"
        " --nologo --filter --list-tests --blame --interactive --force --no-incremental --include --exclude --severity"
        " --verify-no-changes --self-contained --outdated --vulnerable --version --info --help",
    ),
    "dotnet tool": "list search restore install update uninstall +g --global --local --version",
    "flutter": "writes test build analyze clean doctor devices pub --release --debug --profile --verbose --no-pub"
    " --coverage --name --plain-name +v",
    "nix": "each",
    "terraform": "writes fmt validate plan version show output providers graph -check -recursive -diff -json -no-color"
    " -detailed-exitcode -input=* -lock=* -refresh=* -compact-warnings -target=* -raw",
    # Containers.
    **_containers("docker"),
    **_containers("podman"),
    **sub_commands(
        "kubectl",
        "api-resources api-versions cluster-info describe explain get logs top version rollout wait auth",
        _KUBERNETES,
    ),
    **sub_commands("kubectl", "exec run", "each"),
    # Packages of Debian and documents.
    **programs(
        "dh_clean dh_compress dh_install dh_installchangelogs dh_installdirs dh_installdocs dh_installexamples"
        " dh_installlogrotate dh_installman dh_link dh_lintian dh_makeshlibs dh_md5sums dh_missing dh_perl dh_prep"
        " dh_python3 dh_shlibdeps dh_strip dh_systemd dh_testdir dh_fixperms",
        _DEBHELPER,
    ),
    "dh_auto_configure": f"{_DEBHELPER} through --enable-* --disable-* --with-* --without-*",
    "dh_gencontrol": f"{_DEBHELPER} through -T*",
    "genhtml": "writes +o:qfst:p: --output-directory --quiet --frames --show-details --title --prefix --legend"
    " --branch-coverage",
    "geninfo": "writes +o:qfb:t: --output-filename --quiet --base-directory --test-name --no-external",
    "lcov": "writes +czqd:a:e:r:o:l: --capture --zerocounters --directory --output-file --exclude --include --extract"
    " --remove --add-tracefile --list --summary --quiet --base-directory --no-external --version",
    "makeinfo": "writes --html --info --plaintext --docbook --xml --no-split --force --no-warn --no-validate"
    " --number-sections --ifinfo --ifhtml --version --help",
    "openssl": "writes req x509 genrsa genpkey rsa ec pkey dgst rand version verify s_client crl pkcs12 -x509 -sha256"
    " -sha384 -sha512 -sha1 -days -key -out -config -new -nodes -subj -in -noout -text -inform -outform -pubin -pubout"
    " -newkey -keyout -addext -extensions -dates -enddate -startdate -fingerprint -issuer -subject -serial -modulus"
    " -check -verify -CAfile -connect -servername -showcerts -hex -base64 -hmac -export -inkey -passin -passout -a",
}
"""Rows as `rows` describes them."""
