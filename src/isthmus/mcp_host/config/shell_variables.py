"""The variables of the user's shell that servers of the user's own settings get: all that do not look like secrets.

The rule and its settings, ``security.environmentVariableRedaction``, are Gemini CLI's. Servers of a project's file get
a few variables alone, see :mod:`isthmus.mcp_host.transports.stdio`. Pure.
"""

import re
from collections.abc import Iterable, Mapping

from isthmus.encoding.json_shapes import as_list
from isthmus.record import record
from isthmus.runtime.private_variables import EDITOR_ADDRESSES, OWN_TOKENS
from isthmus.settings.keys import VARIABLES_ALLOWED, VARIABLES_BLOCKED
from isthmus.settings.setting_key import SettingKey
from isthmus.settings.settings_file import value_at

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|KEY|AUTH|CREDENTIAL|CREDS|PRIVATE|CERT")
_SECRET_NAMES = frozenset(
    (
        *("CLIENT_ID", "DB_URI", "CONNECTION_STRING", "DATABASE_URL", "SLACK_WEBHOOK_URL", "TWILIO_ACCOUNT_SID"),
        *("AWS_DEFAULT_REGION", "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "FIREBASE_PROJECT_ID"),
        *("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_ACCOUNT"),
    )
)
"""Variables that Gemini CLI gives to no server, whatever their value."""
_PUBLIC_NAMES = frozenset(
    [
        "PATH",
        "HOME",
        "LANG",
        "SHELL",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "TERM",
        "COLORTERM",
        "SYSTEMROOT",
        "COMSPEC",
        "PATHEXT",
        "WINDIR",
        "TEMP",
        "TMP",
        "USERPROFILE",
        "SYSTEMDRIVE",
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
    ]
)
"""Variables that hold no secret although their names look like it, or that each program needs."""
_SECRET_VALUE = re.compile(
    r"-----BEGIN (?:\w+ )?PRIVATE KEY-----|-----BEGIN CERTIFICATE-----"
    r"|[a-z][a-z0-9+.-]{0,30}://[^:/?#\s]{0,1024}:[^@/\s]{1,1024}@"
    r"|(?:ghp|gho|ghu|ghs|ghr|github_pat)_\w{36}|AIzaSy[\w\\-]{33}|AKIA[A-Z0-9]{16}"
    r"|eyJ[\w-]{1,10240}\.[\w-]{1,10240}\.[\w-]{1,10240}|[sr]k_(?:live|test)_\w{24}|xox[abpr]-[\w-]+",
    re.IGNORECASE,
)


@record
class ShellVariables:
    """The rule for the variables of the shell; ``allowed`` and ``blocked`` are names in capitals, from the settings."""

    allowed: frozenset[str] = frozenset()
    blocked: frozenset[str] = frozenset()

    @classmethod
    def of(cls, own: Iterable[Mapping[str, object]], others: Iterable[Mapping[str, object]] = ()) -> "ShellVariables":
        """Return the rule of settings files: the user's ``own``, and others, which can only block."""
        own = [*own]
        return cls(_names(own, VARIABLES_ALLOWED), _names([*own, *others], VARIABLES_BLOCKED))

    def given(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that a server gets."""
        return {name: value for name, value in environment.items() if self._is_given(name.upper(), value)}

    def _is_given(self, name: str, value: str) -> bool:
        if name in OWN_TOKENS or name in EDITOR_ADDRESSES or _SECRET_VALUE.search(value) is not None:
            return False
        if name in self.allowed or name.startswith("GIT_CONFIG_"):
            return True
        if name in self.blocked or name in _SECRET_NAMES:
            return False
        return name in _PUBLIC_NAMES or _SECRET_NAME.search(name) is None


def _names(files: Iterable[Mapping[str, object]], key: SettingKey[None]) -> frozenset[str]:
    listed = (name for values in files for name in as_list(value_at(values, key.name)))
    return frozenset(name.upper() for name in listed if isinstance(name, str))
