"""Paths of a machine that matter to a sandbox: secrets, tools, and files that later run by themselves.

Contains lists only; :mod:`isthmus.sandbox.mounts` uses them. Paths in a home folder are relative to it. The lists are
not complete: a home folder is closed as a whole, and they count when it is opened after all.
"""

HOMES = ("/home", "/root")
"""Folders that contain home folders; they are closed except for paths that are opened in them."""

SYSTEM = frozenset(
    "bin dev etc gnu lib lib32 lib64 libx32 nix opt proc sbin sys usr".split()  # noqa: SIM905 - as the other lists
)
"""Names of the root folders in which a system has its programs."""

TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - the sandbox's own
"""Folders that are empty and private in the sandbox."""

RUN = "/run"
"""Folder of the sockets of services (containers, keyrings, agents, the desktop), which is closed."""
RUN_READABLE = (
    "/run/NetworkManager/resolv.conf",
    "/run/booted-system",
    "/run/current-system",
    "/run/resolvconf",
    "/run/systemd/resolve/resolv.conf",
    "/run/systemd/resolve/stub-resolv.conf",
)
"""Paths below /run that programs need: for name resolution, and the programs of NixOS."""

KERNEL_SETTINGS = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/driver",
    "/proc/dynamic_debug",
    "/proc/fs",
    "/proc/irq",
    "/proc/latency_stats",
    "/proc/mtrr",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/tty",
)
"""Secrets of the whole machine, in files of root: their owner can write them even without a capability."""

SYSTEM_SECRETS = (
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/sudoers",
    "/etc/sudoers.d",
)
"""Files of the machine that root could read."""

HOME_SETTINGS = frozenset({".config/git", ".gitconfig"})
"""Entries of `HOME_TOOLS` that are settings, which may name logins."""

HOME_TOOLS = (
    ".asdf",
    ".bun",
    ".cargo",
    ".config/git",
    ".deno",
    ".fnm",
    ".gitconfig",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
)
"""Programs and their settings that users keep in their home folder: readable."""

HOME_SECRETS = (
    ".authinfo",
    ".authinfo.gpg",
    ".aws",
    ".azure",
    ".bash_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codex",
    ".config/BraveSoftware",
    ".config/anthropic",
    ".config/chromium",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/hub",
    ".config/microsoft-edge",
    ".config/op",
    ".config/rclone",
    ".docker",
    ".gem/credentials",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".mozilla",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".oci",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".python_history",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".thunderbird",
    ".vault-token",
    ".zsh_history",
)
"""Secrets that are closed wherever the home folder is open."""

GIT_RULES = (".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks")
"""Files of a repository with which git starts programs: not writable.

:mod:`isthmus.sandbox.guarded_paths` has the other files of a workspace that start programs.
"""
GIT_HOOKS = ".git/hooks"
"""Folder among GIT_RULES; the others are files."""
GIT_COMMON_FOLDER = ".git/commondir"
"""File among GIT_RULES that git does not accept empty."""
