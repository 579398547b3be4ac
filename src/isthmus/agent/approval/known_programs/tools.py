"""Programs that check, format, test and bundle code in Python and JavaScript, with the options of a permission.

They run code of the project that they work on (its tests, plugins and settings), as their names say.
"""

from isthmus.agent.approval.known_programs.tables import sub_commands

_TESTS = """+bdfgGiwCR:t:s:u: -r --require --reporter --check-leaks --timeout --slow --grep --fgrep --invert --bail
--exit --forbid-only --forbid-pending --recursive --retries --parallel --jobs --watch --ui --color --no-color --sort
--full-trace --inline-diffs --throw-deprecation --enable-source-maps --expose-gc --allow-uncaught --delay --diff
--trace-warnings --version --help"""
_BUNDLERS = """writes --config --watch --mode --minify --sourcemap --no-sourcemap --silent --debug --production
--development --target --host --port --root --open --strictPort --force --clearScreen --logLevel --stats --json
--progress --profile --version --help +wpm:d"""

ROWS: dict[str, str] = {
    # Python.
    "black": "writes +qvl:t:SC --check --diff --color --line-length --target-version --fast --safe --quiet --verbose"
    " --preview --include --exclude --extend-exclude --version --help",
    "codespell": "+wqdfHsi:L:S:x: --config --skip --ignore-words-list --ignore-words --check-filenames --check-hidden"
    " --quiet-level --count --context --version --help",
    **sub_commands(
        "coverage",
        "combine erase html json lcov report xml debug",
        "writes +mi --skip-covered --skip-empty --show-missing --fail-under --include --omit"
        " --precision"
        " --sort --format --title --ignore-errors --append --keep --branch --source --pretty-print --version --help",
    ),
    "coverage run": "args -a -p -m --append --branch --parallel-mode",
    "flake8": "+qvj: --max-line-length --max-complexity --select --ignore --extend-ignore --extend-select --exclude"
    " --extend-exclude --count --statistics --show-source --per-file-ignores --jobs --version --help",
    "isort": "writes +cdqvl: --check --check-only --diff --profile --line-length --quiet --verbose --atomic --skip"
    " --version",
    "mypy": "+pm: --strict --ignore-missing-imports --no-error-summary --show-error-codes --pretty --python-version"
    " --platform --package --module --warn-unused-ignores --warn-return-any --no-incremental --disallow-untyped-defs"
    " --disallow-any-generics --check-untyped-defs --explicit-package-bases --namespace-packages --follow-imports"
    " --exclude --no-color-output --show-column-numbers --verbose --sqlite-cache --version --help",
    "pylint": "+rsyndefj: --disable --enable --jobs --errors-only --score --reports --recursive --ignore"
    " --ignore-patterns"
    " --max-line-length --fail-under --msg-template --output-format --version --help",
    "pyright": "+p: --project --pythonversion --pythonplatform --level --verifytypes --ignoreexternal --stats --verbose"
    " --outputjson --warnings --watch --threads --version --help",
    "pytest": "+xqvslhn:k:m:r:W:# --exitfirst --quiet --verbose --capture --showlocals --lf --last-failed --ff"
    " --failed-first --nf --new-first --sw --stepwise --stepwise-skip --maxfail --tb --cov --no-cov --cov-branch"
    " --cov-fail-under --cov-append --durations --durations-min --timeout --reruns --reruns-delay --show-capture"
    " --color"
    " --disable-warnings --strict --strict-markers --strict-config --co --collect-only --no-header --no-summary"
    " --ignore"
    " --ignore-glob --deselect --fixtures --markers --setup-show --setup-only --asyncio-mode --dist --numprocesses"
    " --forked --randomly-seed --run-slow --runslow --doctest-modules --doctest-glob --import-mode --cache-clear"
    " --benchmark-only --benchmark-skip --hypothesis-seed --hypothesis-show-statistics --snapshot-update --version"
    " --help",
    "ruff": "writes check format rule linter clean version --fix --unsafe-fixes --no-fix --diff --check --select"
    " --ignore"
    " --extend-select --extend-ignore --line-length --target-version --statistics --show-fixes --preview --no-preview"
    " --output-format --exclude --extend-exclude --no-cache --quiet --silent --verbose --watch --add-noqa --exit-zero"
    " --exit-non-zero-on-fix --show-files --show-settings --isolated +qvsne",
    "towncrier": "build check create --version --draft --yes --keep --name --date --content --help",
    "ty": "check version --python-version --python-platform --error --warn --ignore --output-format --watch --exit-zero"
    " --verbose --quiet --error-on-warning --color --version --help +qvW",
    # JavaScript: checks and formats.
    "api-extractor": "run --local --verbose -l -v --diagnostics",
    "bundlewatch": "--config --max-size",
    "check-side-effects": "--test",
    "commitlint": "+eVqsf:t:l:E: --edit --from --to --last --verbose --quiet --strict --color",
    "cspell": "+cuew --cache --no-cache --no-must-find-files --quiet --no-progress --no-summary --unique --words-only"
    " --show-context --show-suggestions --gitignore --dot",
    "dependency-cruiser": "--validate -x -X -T --exclude --include-only --do-not-follow --output-type --max-depth"
    " --ignore-known --version --help",
    "dprint": "writes check fmt output-file-paths output-resolved-config --diff --staged --incremental --excludes"
    " --verbose",
    "ember": "serve build test --environment --watch --port --silent --filter --module",
    "ember-template-lint": "--fix --quiet --max-warnings --no-ignore-pattern --verbose",
    "eslint": "writes --fix --fix-dry-run --fix-type --ext --cache --no-cache --cache-strategy --max-warnings --quiet"
    " --color"
    " --no-color --plugin --env --rule --global --ignore-pattern --no-ignore --no-inline-config --debug --stats"
    " --report-unused-disable-directives --no-error-on-unmatched-pattern --no-warn-ignored --concurrency"
    " --report-unused-inline-configs --print-config --version --help +hv",
    "fusv": "--ignore",
    "husky": "",
    "installed-check": "--engine-check --ignore-dev --version-check --peer-check --fix --strict --verbose",
    "knip": "--production --strict --include --exclude --dependencies --exports --files --fix --no-exit-code"
    " --no-progress"
    " --debug --cache --workspace --tags --treat-config-hints-as-errors",
    "lockfile-lint": "--allowed-hosts --allowed-schemes --allowed-urls --empty-hostname --type --path --validate-https"
    " --validate-integrity --validate-package-names --format -t -p -a -s -o",
    "markdownlint-cli2": "--fix --no-globs",
    "oxfmt": "writes --check --write --list-different --no-error-on-unmatched-pattern --threads",
    "oxlint": "writes --fix --fix-suggestions --deny --warn --allow --quiet --max-warnings --deny-warnings --format"
    " --silent"
    " --threads --type-aware --ignore-pattern --no-ignore +DWAf:",
    "prettier": "writes +wclu --write --check --list-different --log-level --ignore-unknown"
    " --no-error-on-unmatched-pattern"
    " --cache --cache-strategy --no-cache --no-config --print-width --tab-width --use-tabs --no-semi --single-quote"
    " --quote-props --trailing-comma --no-bracket-spacing --arrow-parens --prose-wrap --end-of-line --no-color"
    " --version"
    " --help",
    "stylelint": "writes --cache --cache-location --fix --quiet --max-warnings --allow-empty-input --color --no-color"
    " --ignore-pattern --formatter=string --formatter=json --formatter=compact --report-needless-disables",
    "tsc": "writes -p -b -w -v --project --build --watch --noEmit --emitDeclarationOnly --noEmitOnError --pretty"
    " --incremental"
    " --skipLibCheck --strict --target --module --moduleResolution --lib --jsx --allowJs --checkJs --esModuleInterop"
    " --resolveJsonModule --isolatedModules --listFiles --listEmittedFiles --showConfig --traceResolution --declaration"
    " --sourceMap --removeComments --preserveWatchOutput --diagnostics --extendedDiagnostics --dry --force --verbose"
    " --clean --version --help --all --noUnusedLocals --noUnusedParameters --types",
    "tsd": "writes --files --typings --show-diff",
    "tshy": "writes --watch",
    "tslint": "writes -c -p -t -e --config --project --fix --exclude --format --quiet --force",
    "typedoc": "writes --tsconfig --watch --emit --treatWarningsAsErrors --validation --logLevel",
    "yuidoc": "writes --lint --quiet",
    # JavaScript: tests.
    "bindep": "any test",
    "borp": "+p:c: --timeout --coverage --check-coverage --lines --branches --functions --statements --expose-gc"
    " --pattern"
    " --concurrency --watch --typescript --no-typescript --bail --reporter",
    "cypress": "run verify version info --browser --headless --headed --spec --component --e2e --quiet",
    "jasmine": "--config --filter --random --seed --fail-fast --parallel --verbose --color --no-color",
    "jest": "+iobtuwfe --coverage --watch --watchAll --ci --bail --verbose --silent --runInBand --maxWorkers"
    " --testPathPattern"
    " --testPathPatterns --testNamePattern --onlyChanged --updateSnapshot --passWithNoTests --forceExit"
    " --detectOpenHandles --no-cache --clearCache --findRelatedTests --listTests --testTimeout --testMatch --json"
    " --errorOnDeprecated --expand --color --colors --shard --randomize --seed --logHeapUsage --version --help",
    "karma": "start run --single-run --no-single-run --browsers --no-auto-watch --log-level",
    "mocha": _TESTS,
    "playwright": "test show-report install install-deps --headed --debug --ui --project --grep --grep-invert --workers"
    " --retries --reporter --last-failed --list --update-snapshots --timeout --trace --max-failures --repeat-each"
    " --shard --pass-with-no-tests --quiet --with-deps +gjux",
    "tap": "--timeout --jobs --bail --no-coverage --disable-coverage --allow-incomplete-coverage",
    "vitest": "run watch dev bench list related --run --coverage --watch --ui --project --reporter --silent --bail"
    " --retry"
    " --testNamePattern --environment --globals --dom --passWithNoTests --update --changed --shard --pool --maxWorkers"
    " --isolate --no-isolate --typecheck --browser --no-file-parallelism --hideSkippedTests --testTimeout +tuw",
    # JavaScript: bundlers, generators and files.
    "astro": "writes build check dev preview sync --root --port --host --open --silent --verbose",
    "branchcmp": "any -r -g -s",
    "conventional-changelog-cli": "writes -p -i -s -r --preset --infile --same-file --release-count",
    "esbuild": "writes --bundle --minify --sourcemap --watch --format=* --platform=* --target=* --external:*"
    " --loader:* --splitting"
    " --define:* --log-level=* --tree-shaking=* --jsx=* --version",
    "grunt": "any writes --stack --force --verbose --debug --no-color",
    "gulp": "any writes --silent --tasks --series --continue --no-color",
    "ncp": "writes --stopOnErr --filter --limit",
    "ncu": "writes -u --upgrade --target --filter --reject --interactive --deep --dep --minimal --format --errorLevel",
    "next": "build dev start lint info --turbo --turbopack --port --hostname +p:H:",
    "postcss": "writes --config --replace -r --watch --verbose --map --no-map --env --poll",
    "premove": "writes --cwd",
    "rimraf": "writes --glob -g --preserve-root --verbose -v --interactive",
    "rolldown": _BUNDLERS,
    "rollup": f"{_BUNDLERS} -c",
    "sass": "writes --style --source-map --no-source-map --embed-sources --embed-source-map --no-error-css --update"
    " --watch"
    " --quiet --quiet-deps --load-path --stdin --charset --no-charset --color --no-color --version",
    "svelte-check": "--tsconfig --threshold --fail-on-warnings --watch --ignore",
    "template-oss-apply": "writes --force",
    "tsup": f"{_BUNDLERS} --dts --format --clean",
    "vite": f"{_BUNDLERS} build dev preview optimize serve",
    "vue-tsc": "writes --noEmit --build --watch --project --skipLibCheck -b -p -w",
    "webpack": f"{_BUNDLERS} build watch serve",
}
"""Rows as `rows` describes them."""
