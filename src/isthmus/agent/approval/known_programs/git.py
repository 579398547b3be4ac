"""Sub-commands of git, with the options that neither write a chosen file nor run another program.

Sub-commands without a row have no lasting permission but for one exact command: those that run programs by purpose
(``bisect run``, ``difftool``, ``filter-branch``), those that change the configuration, and the plumbing of transports.
"""

from isthmus.agent.approval.known_programs.tables import sub_commands

_DIFF = """
+pusU:aRbwWM:C:Dl:S:G:O:B:zX:I: --patch --no-patch --unified --function-context --raw --patch-with-raw --patch-with-stat
--numstat --shortstat --dirstat --cumulative --dirstat-by-file --check --summary --name-only --name-status --stat
--stat-width --stat-name-width --stat-graph-width --stat-count --compact-summary --binary --full-index --color
--ws-error-highlight --abbrev --src-prefix --dst-prefix --line-prefix --no-prefix --inter-hunk-context
--output-indicator-new --output-indicator-old --output-indicator-context --break-rewrites --find-renames
--irreversible-delete --find-copies --find-copies-harder --no-renames --rename-empty --follow --minimal
--ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines
--ignore-matching-lines --indent-heuristic --patience --histogram --diff-algorithm --anchored --word-diff
--word-diff-regex --color-words --color-moved --color-moved-ws --relative --text --exit-code --quiet
--ignore-submodules --submodule --ita-invisible-in-index --ita-visible-in-index --pickaxe-all --pickaxe-regex
--rotate-to --skip-to --find-object --diff-filter --merge-base --cached --staged --no-index --no-ext-diff
--no-textconv --cc --combined-all-paths --ours --theirs --base
"""
_REVISIONS = """
+n:#gicmtrqEFPL:h --quiet --source --use-mailmap --mailmap --clear-decorations --decorate-refs --decorate-refs-exclude
--decorate --all --branches --tags --remotes --glob --exclude --max-count --skip --since --after --until --before
--author --committer --grep --grep-reflog --all-match --invert-grep --regexp-ignore-case --basic-regexp
--extended-regexp --fixed-strings --perl-regexp --merges --no-merges --min-parents --max-parents --first-parent
--not --reflog --walk-reflogs --cherry --cherry-mark --cherry-pick --left-only --right-only --left-right --boundary
--simplify-by-decoration --simplify-merges --full-history --dense --sparse --ancestry-path --show-pulls --date-order
--author-date-order --topo-order --reverse --no-walk --do-walk --pretty --format --abbrev-commit --oneline --encoding
--expand-tabs --notes --no-notes --show-notes --relative-date --date --parents --children --graph
--no-graph --show-linear-break --count --log-size --diff-merges --remerge-diff --full-diff --no-diff-merges --stdin
--ignore-missing --bisect --objects --in-commit-order --disk-usage --use-bitmap-index --timestamp --header --help
"""
_LOG = f"{_REVISIONS} {_DIFF}"
_TREE = "writes"
"""The working tree changes: the purpose of the sub-command."""
_MERGE = """
+nsS:m:X:F:qv --commit --ff --ff-only --no-ff --log --signoff --stat --squash --verify --strategy --strategy-option
--verify-signatures --summary --quiet --verbose --progress --autostash --allow-unrelated-histories --message --abort
--continue --quit --rerere-autoupdate --no-edit --into-name --cleanup --help
"""
_FETCH = """
+apvqftknj:o:46u --all --append --atomic --depth --deepen --shallow-since --shallow-exclude --unshallow
--update-shallow --force --keep --multiple --auto-maintenance --auto-gc --prune --prune-tags --no-tags --tags
--recurse-submodules --jobs --set-upstream --quiet --verbose --progress --ipv4 --ipv6 --dry-run --refetch --stdin
--update-head-ok --prefetch --filter --porcelain --help
"""

ROWS: dict[str, str] = {
    "git add": f"{_TREE} +nvfuANp --dry-run --verbose --force --update --renormalize --intent-to-add --all"
    " --ignore-removal --refresh --ignore-errors --ignore-missing --sparse --chmod --warn-embedded-repo --patch --help",
    "git am": f"{_TREE} +3qksi --3way --quiet --keep --signoff --abort --continue --skip --quit --scissors --utf8"
    " --keep-cr --ignore-whitespace --whitespace --directory --exclude --include --reject --help",
    "git apply": f"{_TREE} +3RqvzC:p: --3way --check --stat --numstat --summary --index --cached --intent-to-add"
    " --reverse --reject --unidiff-zero --whitespace --ignore-whitespace --recount --quiet --verbose --allow-empty"
    " --inaccurate-eof --exclude --include --directory --help",
    "git bisect": f"{_TREE} start bad good new old skip reset log terms --term-old --term-new --no-checkout"
    " --first-parent",
    "git blame": "+befknpstwcL:C:M:S:h --root --show-stats --show-email --show-name --show-number --porcelain"
    " --line-porcelain --incremental --date --progress --since --reverse --first-parent --encoding --abbrev"
    " --ignore-rev --ignore-revs-file --color-lines --color-by-age --no-textconv --help",
    "git branch": "+vqtu:arldDmMcCfi --verbose --quiet --track --set-upstream-to --unset-upstream --color --remotes"
    " --contains --no-contains --abbrev --all --delete --move --copy --list --show-current --create-reflog --force"
    " --merged --no-merged --column --sort --points-at --ignore-case --recurse-submodules --format --help",
    "git cat-file": "+etsp --batch --batch-check --batch-command --batch-all-objects --buffer --follow-symlinks"
    " --unordered --allow-unknown-type --use-mailmap --path --help",
    "git check-attr": "+az --all --cached --stdin --source --help",
    "git check-ignore": "+qvzn --quiet --verbose --stdin --non-matching --no-index --help",
    "git checkout": f"{_TREE} +b:B:qfdltmp23 --quiet --progress --force --ours --theirs --track --detach --orphan"
    " --merge --conflict --guess --ignore-skip-worktree-bits --ignore-other-worktrees --recurse-submodules --overlay"
    " --no-overlay --overwrite-ignore --patch --help",
    "git cherry": "+v --abbrev --verbose --help",
    "git cherry-pick": f"{_TREE} +nxm:sX: --no-commit --signoff --mainline --ff --strategy --strategy-option"
    " --allow-empty --allow-empty-message --keep-redundant-commits --empty --abort --continue --skip --quit --no-edit"
    " --rerere-autoupdate --help",
    "git clean": f"{_TREE} +nfdxXqe: --dry-run --force --quiet --exclude --help",
    "git clone": f"{_TREE} +lsnqvb:j: --local --no-hardlinks --shared --no-checkout --bare --mirror --quiet --verbose"
    " --progress --branch --depth --shallow-since --shallow-exclude --single-branch --no-tags --tags --sparse"
    " --recursive --recurse-submodules --shallow-submodules --remote-submodules --jobs --filter --origin"
    " --reject-shallow --dissociate --also-filter-submodules --help",
    "git commit": "+amqvsnC:F:ozu: --all --message --quiet --verbose --signoff --amend --no-edit --no-verify --file"
    " --author --date --reuse-message --fixup --squash --reset-author --trailer --cleanup --status --dry-run --short"
    " --branch --ahead-behind --porcelain --long --null --include --only --allow-empty --allow-empty-message --verify"
    " --post-rewrite --untracked-files --no-gpg-sign --pathspec-from-file --help",
    "git count-objects": "+vH --verbose --human-readable --help",
    "git describe": "--all --tags --contains --abbrev --candidates --exact-match --debug --long --match --exclude"
    " --always --first-parent --dirty --broken --help",
    "git diff": f"{_DIFF} +123 --help",
    "git diff-files": f"{_DIFF} +qc123 --help",
    "git diff-index": f"{_DIFF} +mc --help",
    "git diff-tree": f"{_DIFF} +rtcmv --root --stdin --pretty --format --oneline --no-commit-id --always --help",
    "git fetch": _FETCH,
    "git for-each-ref": "--count --sort --format --points-at --merged --no-merged --contains --no-contains"
    " --ignore-case --color --exclude --stdin --help",
    "git fsck": "--unreachable --dangling --no-dangling --root --tags --cache --no-reflogs --full --no-full --strict"
    " --verbose --progress --connectivity-only --name-objects --help",
    "git gc": "+qf --quiet --auto --aggressive --prune --force --keep-largest-pack --cruft --help",
    "git grep": "+ahIivwVEGPFnlLzocpWqrse:A:B:C:m:f:# --cached --untracked --no-index --exclude-standard --text"
    " --ignore-case --invert-match --word-regexp --line-number --column --files-with-matches --name-only"
    " --files-without-match --null --only-matching --count --color --break --heading --show-function --context"
    " --after-context --before-context --function-context --threads --and --or --not --all-match --quiet --max-depth"
    " --recursive --no-recursive --extended-regexp --basic-regexp --perl-regexp --fixed-strings --full-name"
    " --max-count --recurse-submodules --no-textconv --help",
    "git hash-object": "+t: --stdin --stdin-paths --path --no-filters --literally",
    "git init": f"{_TREE} +qb: --quiet --bare --initial-branch --object-format --shared --help",
    "git log": _LOG,
    "git ls-files": "+zctvfdmoisukx:X:r: --cached --deleted --modified --others --ignored --stage --unmerged --killed"
    " --directory --no-empty-directory --eol --sparse --exclude --exclude-from --exclude-per-directory"
    " --exclude-standard --full-name --recurse-submodules --error-unmatch --with-tree --abbrev --debug --deduplicate"
    " --format --help",
    "git ls-remote": "+hqt --heads --branches --tags --refs --quiet --exit-code --get-url --sort --symref --help",
    "git ls-tree": "+drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev --format"
    " --help",
    "git merge": f"{_TREE} {_MERGE}",
    "git merge-base": "+a --all --octopus --independent --is-ancestor --fork-point --help",
    "git mv": f"{_TREE} +fknv --force --dry-run --verbose --sparse --help",
    "git name-rev": "--tags --refs --exclude --all --annotate-stdin --name-only --no-undefined --always --help",
    "git notes": "list show --ref",
    "git patch-id": "--stable --unstable --verbatim --help",
    "git pull": f"{_TREE} {_FETCH} {_MERGE} +r: --rebase --help",
    "git push": "+nfuqvdo:46 --all --branches --prune --mirror --dry-run --porcelain --delete --tags --follow-tags"
    " --atomic --push-option --force --force-with-lease --force-if-includes --set-upstream --thin --quiet --verbose"
    " --progress --recurse-submodules --verify --no-verify --help",
    "git range-diff": f"{_DIFF} --creation-factor --no-dual-color --left-only --right-only --notes --help",
    "git rebase": f"{_TREE} +fmqvns:X:kC: --onto --keep-base --continue --abort --quit --skip --apply --empty"
    " --keep-empty --reapply-cherry-picks --allow-empty-message --merge --strategy --strategy-option"
    " --rerere-autoupdate --quiet --verbose --stat --no-stat --verify --no-verify --no-ff --force-rebase --fork-point"
    " --ignore-whitespace --whitespace --committer-date-is-author-date --ignore-date --signoff --root --autosquash"
    " --autostash --update-refs --rebase-merges --reschedule-failed-exec --help",
    "git reflog": f"show exists {_LOG}",
    "git remote": "+v show get-url update prune --verbose --all --push --prune --help",
    "git reset": f"{_TREE} +qNp --soft --mixed --hard --merge --keep --quiet --refresh --intent-to-add --patch"
    " --recurse-submodules --help",
    "git restore": f"{_TREE} +s:SWqmp --source --staged --worktree --quiet --progress --ours --theirs --merge"
    " --conflict --overlay --ignore-unmerged --ignore-skip-worktree-bits --recurse-submodules --patch --help",
    "git rev-list": f"{_REVISIONS} --help",
    "git rev-parse": "+q --verify --quiet --short --abbrev-ref --symbolic --symbolic-full-name --all --branches --tags"
    " --remotes --glob --exclude --disambiguate --git-dir --absolute-git-dir --git-common-dir --is-inside-git-dir"
    " --is-inside-work-tree --is-bare-repository --is-shallow-repository --show-toplevel --show-prefix --show-cdup"
    " --show-superproject-working-tree --show-object-format --git-path --local-env-vars --revs-only --no-revs"
    " --flags --no-flags --default --prefix --since --until --path-format --shared-index-path --help",
    "git revert": f"{_TREE} +nm:sX: --no-commit --mainline --signoff --strategy --strategy-option --no-edit --abort"
    " --continue --skip --quit --rerere-autoupdate --reference --help",
    "git rm": f"{_TREE} +fnrq --force --dry-run --cached --ignore-unmatch --sparse --quiet --help",
    "git shortlog": f"{_REVISIONS} +nsew: --numbered --summary --email --group --committer --help",
    "git show": f"{_LOG} --no-textconv",
    "git show-branch": "+ar --all --remotes --current --topo-order --date-order --sparse --more --list --merge-base"
    " --independent --no-name --sha1-name --topics --reflog --color --help",
    "git show-ref": "+dqs --head --heads --branches --tags --verify --exists --quiet --dereference --hash --abbrev"
    " --exclude-existing --help",
    "git sparse-checkout": f"{_TREE} list set add reapply disable check-rules --cone --no-cone --help",
    "git stage": f"{_TREE} +nvfuANp --all --update --force --help",
    "git stash": f"{_TREE} {_DIFF} +kqm:SPn:# push pop apply drop list show branch clear save create store"
    " --keep-index --include-untracked --all --only-untracked --quiet --message --staged --index --oneline --format"
    " --pretty --date --max-count --help",
    "git status": "*",
    "git submodule": f"{_TREE} +qNf status init deinit update summary sync absorbgitdirs --quiet --cached --recursive"
    " --init --force --all --depth --jobs --merge --rebase --checkout --no-fetch --recommend-shallow"
    " --single-branch --filter --files --summary-limit --help",
    "git switch": f"{_TREE} +c:C:dtmqf --create --force-create --detach --track --no-track --guess --merge --conflict"
    " --discard-changes --force --quiet --progress --orphan --ignore-other-worktrees --recurse-submodules --help",
    "git symbolic-ref": "+qd --quiet --short --recurse --no-recurse --help",
    "git tag": "+am:fldn:iF: --annotate --message --force --list --delete --sort --format --contains --no-contains"
    " --merged --no-merged --points-at --column --color --ignore-case --create-reflog --no-sign --file --cleanup"
    " --help",
    "git var": "",
    "git verify-pack": "+vs --verbose --stat-only",
    "git version": "--build-options --help",
    "git whatchanged": _LOG,
    "git worktree": f"{_TREE} +fb:B:dqnv list add move prune remove lock unlock repair --force --detach --checkout"
    " --lock --reason --quiet --track --guess-remote --orphan --porcelain --verbose --dry-run --expire --help",
    "git write-tree": "--missing-ok --prefix",
    # Sub-commands that run programs, or make git run them.
    **sub_commands(
        "git",
        "archive credential difftool filter-branch for-each-repo format-patch help hook instaweb mergetool send-email"
        " send-pack web--browse",
        "each",
    ),
}
"""Rows as `rows` describes them. ``git config`` has rules of its own."""
