"""What a connection to a server is made with, besides the server's own configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.mcp_host.catalogue.manifests import Manifests
    from isthmus.mcp_host.connection.start_limit import StartLimit
    from isthmus.mcp_host.diagnosis.trace import Trace
    from isthmus.network.checked_transport import AddressPolicy
    from isthmus.sandbox.finding import SandboxFinder


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """What a connection is made with. ``home`` is where logins are kept; None: there is none to use.

    ``manifests`` None: nothing is kept from one start to the next. ``gate`` None: programs start whenever they like.
    ``sandbox`` None: it is looked for anew when a server wants it.
    ``trace`` None: what goes to and fro is written down nowhere.
    """

    environment: Mapping[str, str]
    workspace: Path
    home: Path | None = None
    why_not: "AddressPolicy | None" = None
    manifests: "Manifests | None" = None
    gate: "StartLimit | None" = None
    sandbox: "SandboxFinder | None" = None
    trace: "Trace | None" = None
    open_browser: Callable[[str], object] | None = None
    """Shows a page to the user, where there is one at this machine."""
    reads_freely: bool = False
    """Its tools that say that they only read run without asking."""
