"""Metrics of ``serve``, and the pages by which others watch it, from its options."""

from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.a2a.server.probes import Probes
    from isthmus.engine import Engine
    from isthmus.telemetry import Telemetry


@record
class TelemetryOptions:
    """Options of ``serve`` for those who operate it.

    ``metrics_token_file`` has a token that opens /metrics alone; with ``metrics_are_open`` nobody needs one. The tasks
    of up to ``metrics_users`` users are counted by name.
    """

    metrics_token_file: Path | None = None
    metrics_are_open: bool = False
    metrics_users: int = 0


class ServedTelemetry:
    """The telemetry of one server; ``work`` takes what happens.

    Raises:
        TokenFileError: the file with the token cannot be used.
    """

    def __init__(self, options: TelemetryOptions) -> None:
        from isthmus.a2a.token_file import ensure_token_file
        from isthmus.observability.metrics import WorkMetrics

        path = options.metrics_token_file
        self.token = "" if path is None else ensure_token_file(path)
        self._options = options
        self._metrics = WorkMetrics()
        self.work: Telemetry = self._metrics

    def probes(self, engine: "Engine") -> "Probes":
        """Return the pages for programs that watch the server."""
        from isthmus.a2a.server.probes import Metrics, Probes
        from isthmus.engine.readiness import Readiness
        from isthmus.observability.exposition import CONTENT_TYPE
        from isthmus.observability.page import MetricsPage

        ready, options = Readiness(engine), self._options
        page = MetricsPage(engine, self._metrics, ready, options.metrics_users)
        return Probes(ready, Metrics(page.text, CONTENT_TYPE, self.token, options.metrics_are_open))
