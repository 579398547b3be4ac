"""Programs of the system: files, texts, archives, networks and packages, with the options that a permission covers."""

from isthmus.agent.approval.known_programs.tables import programs, sub_commands

_COMPRESSION = """writes +cdfklqtvn0123456789T: --stdout --decompress --compress --force --keep --list --quiet --test
--verbose --best --fast --threads --no-name --recursive --help --version"""
_BINARIES = """+aAbBCdDefghij:klnNoprsStuvVwWxXyz --all --demangle --headers --syms --symbols --dynamic --sections
--segments --file-header --program-headers --section-headers --relocs --notes --wide --disassemble --source
--line-numbers --undefined-only --defined-only --size-sort --print-size --extern-only --bytes --radix --format --help
--version"""

ROWS: dict[str, str] = {
    **programs(
        """
        : [ [[ basename break cat cd cmp comm continue cut df dir dircolors dirname dirs du echo egrep exit expand
        expr factor false fgrep fmt fold free getconf groups grep head hexdump hostid id jq kill ls lsb_release lscpu
        md5sum nl nproc numfmt od paste pathchk pgrep pinky pkill popd pr printenv printf ps pushd pwd readlink
        realpath return seq sha1sum sha224sum sha256sum sha384sum sha512sum shift sleep stat sum sync tac tail test
        times tr true tsort tty type umask ulimit uname unexpand uptime users vdir vmstat wait wc which who whoami
        """,
        "*",
    ),
    **programs("chgrp chmod chown cp link ln mkdir mkfifo mktemp mv rm rmdir tee touch truncate unlink", "* writes"),
    # Texts and files.
    "ack": "+iwlcnhHqovxsA:B:C:m:Q --ignore-case --word-regexp --count --type --files-with-matches --color --nocolor",
    "ag": "+iwlcoQsvA:B:C:m:G: --ignore-case --word-regexp --count --files-with-matches --nocolor --hidden --ignore",
    "base64": "+diw: --decode --ignore-garbage --wrap --help --version",
    "bat": "+pnAl:r:H: --plain --number --show-all --language --line-range --highlight-line --style --color"
    " --decorations"
    " --wrap --tabs --theme --list-languages --list-themes",
    "cksum": "+a:cw --algorithm --check --tag --untagged --ignore-missing --quiet --status --strict --warn --zero",
    "column": "+tnxs:o:c:N:R:H:W:E:d --table --separator --output-separator --output-width --table-columns"
    " --table-right --table-hide --table-noheadings --json --tree --help",
    "date": "+d:Iur:R --date --iso-8601 --rfc-email --rfc-3339 --utc --universal --reference --debug --help --version",
    "diff": "+qsc:u:eyt:TpbBwiEZaNrdU:C:W:I:F:x:X:S: --normal --brief --report-identical-files --context --unified"
    " --side-by-side --width --left-column --suppress-common-lines --show-c-function --show-function-line --label"
    " --expand-tabs --initial-tab --tabsize --suppress-blank-empty --recursive --no-dereference --new-file"
    " --unidirectional-new-file --ignore-file-name-case --exclude --exclude-from --starting-file --from-file --to-file"
    " --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change --ignore-all-space"
    " --ignore-blank-lines --ignore-matching-lines --text --strip-trailing-cr --minimal --horizon-lines"
    " --speed-large-files --color --palette --help --version",
    "diff3": "+aAeEimTxX3L: --text --show-all --ed --merge --label --strip-trailing-cr --easy-only --overlap-only",
    "fd": "+HIusigFaLp0d:E:e:S:c:1qt: --hidden --no-ignore --unrestricted --case-sensitive --ignore-case --glob"
    " --regex --fixed-strings --absolute-path --follow --full-path --print0 --max-depth --min-depth"
    " --exact-depth --exclude --prune --type --extension --size --changed-within --changed-before --color --threads"
    " --max-results --quiet",
    "file": "+bcehiIklLnNprsSv0EdF:f:m:P: --brief --mime --mime-type --mime-encoding --extension --dereference"
    " --no-dereference --keep-going --print0 --raw --list --apple --separator --exclude --help --version",
    "find": "*",
    "hostname": "+adfAiIsy <0 --alias --domain --fqdn --long --all-fqdns --ip-address --all-ip-addresses --short"
    " --help",
    "nm": _BINARIES,
    "objdump": _BINARIES,
    "patch": "writes +bcEfNRstuF:p:d:i: --backup --context --force --forward --fuzz --strip --input --dry-run --quiet"
    " --silent --reverse --batch --unified --verbose --binary --posix --remove-empty-files --no-backup-if-mismatch",
    "readelf": _BINARIES,
    "rg": "+nNiwSsFclLvoUHIuPpahxqA:B:C:e:f:g:t:T:m:d:M:j:E:r: --line-number --no-line-number --ignore-case"
    " --word-regexp --smart-case --case-sensitive --fixed-strings --count --count-matches --files-with-matches"
    " --files-without-match --invert-match --only-matching --multiline --multiline-dotall --with-filename"
    " --no-filename --no-ignore --no-ignore-vcs --hidden --pcre2 --heading --no-heading --text --binary --line-regexp"
    " --quiet --after-context --before-context --context --regexp --file --glob --iglob --type --type-not --type-add"
    " --type-list --max-count --max-depth --max-columns --max-filesize --threads --encoding --replace --files --follow"
    " --sort --sortr --stats --json --column --color --colors --vimgrep --no-config --no-messages --trim --null"
    " --passthru --crlf --one-file-system --help --version",
    "rsync": "writes : +avrlptgoDHAXuncizhqPSWxkLKOJIbCRdE --archive --verbose --recursive --links --perms --times"
    " --group"
    " --owner --devices --specials --hard-links --update --dry-run --checksum --itemize-changes --compress"
    " --human-readable --quiet --partial --progress --stats --delete --delete-after --delete-before --delete-excluded"
    " --exclude --exclude-from --include --include-from --existing --ignore-existing --size-only --max-size --min-size"
    " --numeric-ids --inplace --whole-file --copy-links --safe-links --info --list-only --relative --mkpath --help",
    "shuf": "+ei:n:rz --echo --input-range --head-count --repeat --zero-terminated --help --version",
    "size": "+ABdoxtf --format --radix --totals --help --version",
    "sort": "+bcCdfghiMmnRrsuVzk:t: --ignore-leading-blanks --check --dictionary-order --ignore-case"
    " --general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort --merge --numeric-sort"
    " --random-sort --reverse --stable --unique --version-sort --zero-terminated --key --field-separator --parallel"
    " --sort --debug --buffer-size --batch-size --files0-from --random-source --help --version",
    "strings": "+afwe:n:t:oU:s:T:# --all --bytes --radix --encoding --print-file-name --help --version",
    "tree": "+aAdfghiI:lL:nNpP:qQrsStuUvxDFCJXc --dirsfirst --filesfirst --gitignore --noreport --prune --du --si"
    " --inodes --device --sort --matchdirs --ignore-case --charset --timefmt --nolinks --help --version",
    "uniq": "<1 +cdDuizf:s:w: --count --repeated --all-repeated --skip-fields --group --ignore-case --skip-chars"
    " --unique --zero-terminated --check-chars --help --version",
    "xmllint": "--noout --format --valid --schema --relaxng --xpath --nonet --noent --recover --encode --html --version"
    " --huge --pretty --c14n",
    "xxd": "<1 +abCdeEipuc:g:l:n:o:R:s: -autoskip -bits -cols -ebcdic -groupsize -include -len -offset -plain -seek"
    " -uppercase",
    "yq": "+rceMPNnjy --raw-output --exit-status --null-input --prettyPrint --no-colors --output-format -o=json"
    " -o=yaml",
    # Archives.
    "bzip2": _COMPRESSION,
    "cpio": "writes +itumdvB --extract --list --make-directories --preserve-modification-time --unconditional --verbose"
    " --quiet --no-absolute-filenames --help --version",
    "gunzip": _COMPRESSION,
    "gzip": f"{_COMPRESSION} +r",
    "tar": "writes : through +cxtrudzjJpvakmhOWPSf:C:X:b: --create --extract --get --list --append --update --diff"
    " --compare"
    " --gzip --bzip2 --xz --zstd --lzma --auto-compress --verbose --file --directory --exclude --exclude-from"
    " --exclude-vcs --exclude-vcs-ignores --strip-components --preserve-permissions --same-owner --no-same-owner"
    " --no-same-permissions --to-stdout --dereference --wildcards --no-wildcards --anchored --one-file-system"
    " --keep-old-files --skip-old-files --overwrite --transform --owner --group --mode --mtime --sort --numeric-owner"
    " --no-recursion --null --touch --help --version",
    "unzip": "writes +clpqtvzaAjnoLUuZd:x: --help",
    "xz": _COMPRESSION,
    "zcat": "*",
    "zip": "writes +rjmquvy0123456789i:x:fdgeDX --recurse-paths --junk-paths --quiet --update --verbose --symlinks"
    " --exclude --include --freshen --delete --help",
    # Networks. What is sent and loaded is named by the address.
    "curl": "+sSfLkviIgGNmZ0146#H:A:e:b:d:F:X:u:m:r:x:y:Y:z: --silent --show-error --fail --fail-with-body --location"
    " --insecure --verbose --include --head --globoff --get --no-buffer --compressed --header --user-agent --referer"
    " --cookie --data --data-raw --data-binary --data-urlencode --json --form --form-string --request --user"
    " --max-time --connect-timeout --retry --retry-delay --retry-max-time --retry-connrefused --retry-all-errors"
    " --range --proxy --resolve --connect-to --http1.0 --http1.1 --http2 --http3 --ipv4 --ipv6 --cacert"
    " --tlsv1.2 --tlsv1.3 --unix-socket --url --url-query --no-progress-meter --progress-bar --parallel --limit-rate"
    " --noproxy --path-as-is --raw --tcp-nodelay --oauth2-bearer --proto --max-redirs --help --version",
    "dig": "+t:x:p:46",
    "install": "writes +bcDdg:m:o:pS:Tt:v --backup --directory --group --mode --owner --preserve-timestamps --suffix"
    " --target-directory --no-target-directory --verbose --help --version",
    "host": "+aAdilrsvwt:c:W:4",
    "ip": "each",
    "journalctl": "+afeun:u:t:p:g:kb:rqxo:S:U:D:m --all --follow --pager-end --lines --unit --user-unit --identifier"
    " --priority --grep --dmesg --boot --list-boots --reverse --quiet --catalog --output --output-fields --since"
    " --until --no-pager --no-tail --no-hostname --utc --system --user --merge --disk-usage --fields --field",
    "nslookup": "",
    "ping": "+c:i:w:W:nqs:t:46av",
    "tcpdump": "each",
    "wget": "writes +qvSNcr:np46t:T:w: --quiet --verbose --no-verbose --server-response --timestamping --continue"
    " --spider --tries --timeout --wait --no-check-certificate --header --user-agent --recursive --level --no-parent"
    " --page-requisites --convert-links --accept --reject --domains --https-only --show-progress --no-clobber"
    " --content-disposition --max-redirect --method --help --version",
    # The system.
    "systemctl": "+alnqt: list-units list-unit-files list-timers list-sockets list-jobs list-dependencies status show"
    " cat is-active is-enabled is-failed is-system-running get-default start stop restart reload try-restart"
    " enable disable daemon-reload reset-failed --no-pager --user --system --all --full --lines --output --plain"
    " --no-legend --type --state --property --now --quiet --failed --value",
    "top": "+bHisc1d:n:p:u:w:o:",
    # Packages.
    "apk": "+uUqvt: add del update upgrade info list search fetch fix version policy stats --no-cache --update-cache"
    " --upgrade --available --virtual --quiet --verbose --no-progress --simulate",
    **sub_commands(
        "apt",
        "install remove update upgrade list show search policy autoremove purge",
        "+yqVsmfd --yes --assume-yes --quiet --no-install-recommends --install-recommends --simulate"
        " --dry-run --fix-missing --fix-broken --download-only --upgradable --installed --all-versions --names-only"
        " --purge --autoremove --reinstall --only-upgrade --verbose-versions --no-upgrade --allow-downgrades",
    ),
    "brew": "install uninstall upgrade update list info search outdated deps uses tap cleanup doctor services reinstall"
    " --cask --formula --quiet --verbose --force --dry-run --json --versions +qvfn",
    "conda": "list info install create remove update search --name --yes --quiet --channel --json --dry-run --all"
    " --override-channels +n:yqc:d",
    "dnf": "install remove update upgrade list info search check-update autoremove repolist makecache --assumeyes"
    " --quiet --refresh --best --allowerasing --nogpgcheck +yqv",
    "snap": "list info find install remove refresh --classic --channel",
    # Programs that run others, or whose options to write and to run are too many to name.
    **programs("dd fzf less man more sdiff split xsltproc", "each"),
}
ROWS.update({key.replace("apt ", "apt-get ", 1): row for key, row in tuple(ROWS.items()) if key.startswith("apt ")})
"""Rows as `rows` describes them. awk and sed have rules of their own."""
