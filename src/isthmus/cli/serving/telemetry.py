"""The options of ``isthmus serve`` for those who operate it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isthmus.cli.arguments.option_group import option_group

if TYPE_CHECKING:
    from isthmus.a2a.serving.telemetry import TelemetryOptions

telemetry_options = option_group(
    click.option(
        "--metrics-token-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="File with a bearer token for /metrics alone; created if missing. Your own token opens it, too.",
    ),
    click.option("--metrics-open", is_flag=True, help="Let everybody who reaches the server read /metrics."),
    click.option(
        "--metrics-users",
        type=click.IntRange(0, 100),
        default=0,
        metavar="N",
        help="Count the tasks and the cost of up to N users by name on /metrics, the others together."
        " Default: no names.",
    ),
    click.option(
        "--otel",
        is_flag=True,
        help="Send traces and metrics by OpenTelemetry, as its OTEL_... variables say."
        " OTEL_EXPORTER_OTLP_ENDPOINT implies it.",
    ),
)


def telemetry(options: dict[str, Any]) -> "TelemetryOptions":
    """Return what the options say."""
    from isthmus.a2a.serving.telemetry import TelemetryOptions

    return TelemetryOptions(
        options["metrics_token_file"], options["metrics_open"], options["metrics_users"], options["otel"]
    )
