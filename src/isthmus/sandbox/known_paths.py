"""What lies where on a machine, as far as a sandbox cares: secrets, tools, and files that later run by themselves.

Lists of paths alone; what follows from them is in :mod:`isthmus.sandbox.mounts`. Paths of a home folder are relative
to it. Not complete: a home folder is closed as a whole, and these are what counts when it is opened after all.
"""

HOMES = ("/home", "/root")
"""Where home folders lie: closed, but for what is opened in them."""

TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - those in the sandbox
"""Empty and private in the sandbox."""

RUN = "/run"
"""Sockets of services (containers, keyrings, agents, the desktop): closed."""
RUN_READABLE = (
    "/run/NetworkManager/resolv.conf",
    "/run/booted-system",
    "/run/current-system",
    "/run/resolvconf",
    "/run/systemd/resolve/resolv.conf",
    "/run/systemd/resolve/stub-resolv.conf",
)
"""What programs need of it: how names are resolved, and where NixOS has its programs."""

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
"""Of the whole machine, in files of root: without a capability they can still be written by their owner."""

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
"""What root could read."""

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
"""Programs and their settings that people keep at home: can be read."""

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
"""Closed wherever the home folder is open."""

HOME_STARTUP = (
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".config/autostart",
    ".config/fish",
    ".config/git",
    ".config/systemd",
    ".gitconfig",
    ".local/bin",
    ".profile",
    ".zprofile",
    ".zshenv",
    ".zshrc",
)
"""What runs by itself outside the sandbox, later: cannot be written, also when the home folder can."""

WORKSPACE_RULES = (".git/commondir", ".git/config", ".git/config.worktree", ".git/hooks", ".gemini", ".mcp.json")
"""What a workspace makes run outside the sandbox, or what rules an agent: cannot be written in it. What else others act
on by themselves is in :mod:`isthmus.sandbox.guarded_paths`."""
WORKSPACE_RULE_FOLDERS = (".git/hooks", ".gemini")
"""Those of them that are closed even when they are missing, so that they are not made."""
