"""What a connection to a server is made with, besides the server's own configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isthmus.ide.checked_transport import WhyNot


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a connection is made with. ``home`` is where logins are kept; None: there is none to use."""

    environment: Mapping[str, str]
    workspace: Path
    home: Path | None = None
    why_not: "WhyNot | None" = None
