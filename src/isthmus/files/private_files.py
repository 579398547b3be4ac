"""Files that hold secrets by their names: settings with passwords, private keys, and credentials.

Not here: what `.geminiignore` closes, see `isthmus.tools.port.workspace`, and what a companion hides, see
`isthmus.ide.workspace.privacy`.
"""

import re
from collections.abc import Iterable

from isthmus.files.path_rules import PathRule, compiled

_LINES = (
    # Examples and folders with these names hold no secrets; an environment of Python may be called .env.
    *(".env", ".env.*", ".envrc", "!.env/", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist"),
    *("!.env.defaults", "!.env.*.example", "!.env.*.sample", "!.env.*.template"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "!*.key/", "!*.pem/"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
    *("**/.ssh/*", "!**/.ssh/*.pub", "!**/.ssh/known_hosts", "**/.gnupg/*", "**/.aws/credentials", "**/.azure/*.json"),
    *("**/.config/gcloud/*", "**/.docker/config.json", "**/.kube/config", "**/.git/config", "**/.git/credentials"),
    *(".git-credentials", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".pypirc", ".npmrc", ".htpasswd", ".vault_pass*"),
    *("credentials.json", "client_secret*.json", "service-account*.json", "service_account*.json", ".terraformrc"),
    *("secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "terraform.tfstate", "terraform.tfstate.backup"),
)
"""Lines of an ignore file; a later line counts before an earlier one."""
_NAMES = "|".join(
    re.escape(line.lower()).replace(r"\*", "[^/]*") for line in _LINES if "/" not in line and not line.startswith("!")
)
_FOLDERS = r"\.ssh|\.gnupg|\.aws|\.azure|gcloud|\.docker|\.kube|\.git"
_MAYBE = re.compile(rf"(?:^|/)(?:{_NAMES}|{_FOLDERS})(?:$|/)")
"""Found in each path that a line may be about; most paths have none of these names, and lines are slow."""
PRIVATE_FILES = PathRule("private files", tuple(("/", line) for line in _LINES))


def is_private(paths: Iterable[str]) -> bool:
    """Return whether a file holds secrets by one of its absolute paths, such as its own and the one it leads to."""
    likely = [path for path in paths if not path.isascii() or _MAYBE.search(path.lower())]
    return bool(likely) and compiled((PRIVATE_FILES,)).find_any(likely) is not None
