"""Options of a server that are the same for every agent, beside the options of the A2A server itself."""

from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.a2a.serving.names import IN_PYTHON, OptionNames
from isthmus.a2a.serving.telemetry import TelemetryOptions
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.a2a.serving.users import SignIn


@record
class ServingOptions:
    """Options of a server, whatever agent it serves.

    ``certificate`` holds the paths of the certificate and of its key. ``names`` are the names of the options in
    messages.
    """

    certificate: tuple[Path, Path] | None = None
    insecure_http: bool = False
    """Whether tokens may cross a network unencrypted."""
    pushes_to: tuple[str, ...] = ()
    """Private names and networks that push notifications may go to, besides all public ones."""
    sign_in: "SignIn | None" = None
    """Issuer whose users are let in, too."""
    audit_log: Path | None = None
    """File to which a line of JSON is appended for each request."""
    drain_seconds: float = 0.0
    """Maximum time in seconds for running tasks to end after SIGTERM."""
    telemetry: TelemetryOptions = TelemetryOptions()
    names: OptionNames = IN_PYTHON
