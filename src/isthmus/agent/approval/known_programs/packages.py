"""Package managers and runners of a project's scripts, with the options that a permission covers."""

from isthmus.agent.approval.known_programs.tables import sub_commands

_SCRIPT = """any -s -w -D -g -P -E -O -q -y --silent --quiet --if-present --workspaces --include-workspace-root
--ignore-scripts --no-audit --no-fund --no-save --save-dev --save-exact --save-optional --save-peer --production --omit
--include --legacy-peer-deps --force --prefer-offline --offline --frozen-lockfile --immutable --check --fix --watch
--verbose --coverage --testMatch --bail --runInBand --ci --updateSnapshot -u --depth --json --long --all --global
--workspace --recursive -r --filter --parallel --stream --dry-run --tag --access --otp --lockfile-only --latest
--no-optional --dev --prod --loglevel --color --no-color --version --help"""
_PIP = """writes +qvIUr:e:yuof --quiet --verbose --upgrade --requirement --editable --no-deps --user --yes --outdated
--format --pre --force-reinstall --no-cache-dir --disable-pip-version-check --constraint --dry-run --require-hashes
--no-input --break-system-packages --local --not-required --all --files --path --only-binary --no-binary
--upgrade-strategy --eager --version --help"""
_PIP_NAMES = "check debug freeze index install inspect list show uninstall"
_UV = """writes +qvUp:r:ne: --quiet --verbose --upgrade --upgrade-package --requirement --editable --no-deps
--all-extras --extra --group --all-groups --dev --no-dev --frozen --locked --no-sync --no-cache --offline --system
--dry-run --output-format --format --strict --outdated --resolution --prerelease --check --seed --clear --bare --name
--package --with --force --reinstall --no-progress --all-packages --depth --invert --bump --version --help"""
_PYTHON_PROJECTS = """writes +qvynGD:E: --quiet --verbose --no-interaction --no-root --no-dev --dev --with --without
--only --group --extras --all-extras --all-groups --sync --dry-run --lock --latest --tree --outdated --no-update
--no-cache --frozen-lockfile --prod --keep-outdated --help --version"""
_PROJECT_NAMES = (
    """add build check clean env fmt graph install list lock remove show sync test uninstall update verify version"""
)
_GH = """expand +R:L:s:S:A:a:B:H:b:t:l:m:r:dfqy:F:n:p: --repo --limit --state --search --author --assignee --base --head
--body --body-file --title --label --milestone --reviewer --draft --fill --json --jq --template --comments --watch
--exit-status --log --log-failed --verbose --job --notes --notes-file --generate-notes --verify-tag --prerelease
--latest --target --merge --squash --rebase --auto --delete-branch --admin --approve --comment --request-changes
--name-only --patch --branch --commit --event --user --workflow --ref --raw-field --field --failed --debug --attempt
--all --visibility --public --private --description --required --interval --fail-fast --color --help"""

ROWS: dict[str, str] = {
    "npm": _SCRIPT,
    "pnpm": _SCRIPT,
    "yarn": _SCRIPT,
    "bun": f"{_SCRIPT} --hot --smol --timeout --rerun-each --only --todo",
    **sub_commands("npm", "config edit exec explore init pkg x set-script", "each"),
    **sub_commands("pnpm", "config create dlx exec init", "each"),
    **sub_commands("yarn", "config create dlx exec init node", "each"),
    **sub_commands("bun", "create exec init repl x", "each"),
    **sub_commands(
        "npm",
        "audit ci dedupe i install list ls outdated prune uninstall update view whoami why",
        f"writes {_SCRIPT} +sgDEOPlqawf",
    ),
    "npm-run-all": "+slncrp any --aggregate-output --continue-on-error --parallel --sequential --serial --print-label"
    " --print-name --silent --race --max-parallel",
    "run-p": "+slncr any --aggregate-output --continue-on-error --print-label --print-name --silent --race"
    " --max-parallel",
    "run-s": "+slnc any --continue-on-error --print-label --print-name --silent",
    # A name of a script, as npm-run-all writes it, where a program is expected: there is none.
    "npm:watch:tsc": "",
    **sub_commands("pip", _PIP_NAMES, _PIP),
    **sub_commands("pip3", _PIP_NAMES, _PIP),
    **sub_commands("uv", "add build init lock pip remove sync tree venv version", _UV),
    "uv tool": f"expand {_UV} install upgrade list uninstall dir --python",
    "uv python": "list find install uninstall pin dir upgrade",
    **sub_commands("hatch", _PROJECT_NAMES, _PYTHON_PROJECTS),
    **sub_commands("pdm", _PROJECT_NAMES, _PYTHON_PROJECTS),
    **sub_commands("pipenv", _PROJECT_NAMES, _PYTHON_PROJECTS),
    **sub_commands("poetry", _PROJECT_NAMES, _PYTHON_PROJECTS),
    **sub_commands("rye", _PROJECT_NAMES, _PYTHON_PROJECTS),
    "pipx": "list install uninstall upgrade upgrade-all environment --verbose --quiet --force --include-deps +qf",
    "tox": "any +e:qvrpl --recreate --parallel --quiet --verbose --list --listenvs --notest --skip-missing-interpreters"
    " --develop --version --help",
    **sub_commands("gh", "issue label pr release run search status workflow", _GH),
    "gh auth": "status",
    "gh repo": f"{_GH} view list fork sync archive rename",
    **sub_commands(
        "glab",
        "issue mr ci pipeline release",
        "+R:P:p:a:l:m:s:t:b:d --repo --per-page --page --assignee --label --milestone --title --description"
        " --source-branch --target-branch --draft --output --help",
    ),
    **sub_commands(
        "composer",
        "audit check-platform-reqs dump-autoload install outdated remove require show test update validate why why-not",
        "+nqvoaW --no-interaction --quiet --verbose --no-dev --dev --no-scripts --no-plugins"
        " --optimize-autoloader --prefer-dist --dry-run --with-dependencies --with-all-dependencies --no-progress"
        " --latest --outdated --direct --tree --format --strict",
    ),
    **sub_commands(
        "gem",
        "install list search uninstall update outdated info environment",
        "+qvNl --quiet --verbose --no-document --local --remote --version --all --user-install",
    ),
    **sub_commands("rustup", "component default show target toolchain update", "any"),
    **sub_commands(
        "svn",
        "info list log ls status update",
        "+r:uvqNl:c: --revision --verbose --quiet --limit --xml --summarize --show-updates --depth --stop-on-copy",
    ),
    **sub_commands(
        "hg",
        "branch branches diff id identify log status summary tags",
        "+r:l:pvqgGMuam: --rev --limit --patch --verbose --quiet --git --stat --graph --template --user",
    ),
    "aws s3": "ls --recursive --human-readable --summarize --region --profile",
    "deno check": "--all --quiet --reload",
    "deno fmt": "writes --check --quiet --watch",
    "deno lint": "--fix --quiet --json --watch",
    "deno run": "args -A -q -r --allow-all --allow-read --allow-write --allow-net --allow-env --allow-run --check"
    " --no-check"
    " --quiet --reload --watch --allow-read=* --allow-write=* --allow-net=* --allow-env=*",
    "deno task": "any --cwd --quiet -q",
    "deno test": "+Aqr --allow-all --allow-read --allow-write --allow-net --allow-env --allow-run --check --no-check"
    " --quiet --reload --watch --parallel --filter --fail-fast --coverage --doc --trace-leaks",
    "deno eval": "each",
}
"""Rows as `rows` describes them."""
