"""The options of a server that do not concern its agent."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.a2a.serving.names import OptionNames
from isthmus.a2a.serving.options import ServingOptions
from isthmus.a2a.serving.telemetry import TelemetryOptions
from isthmus.record import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isthmus.a2a.serving.users import SignIn
    from isthmus.engine.port.placement import Placement
    from isthmus.programs.agent.hosted_agent import HostedCommand
    from isthmus.worktrees.repository_url import RepositoryUrl

NAMES = OptionNames(
    audit_log="--audit-log",
    certificate="--tls-cert and --tls-key",
    host="--host",
    insecure_http="--insecure-http",
    otel="--otel",
    public_url="--public-url",
    pushes_to="--allow-push-to",
    sign_in="--oidc-issuer",
    tokens_a_day="--user-max-tokens-a-day",
    usd_a_day="--user-max-usd-a-day",
    unknown_costs="the cost of the models of the agent of --agent is not known",
    unknown_tokens="the tokens that the agent of --agent uses are not known",
    workspaces="--workspace DIR",
)
"""Names of the options on the command line."""


@record
class ServeSettings:
    """Options of ``serve`` that do not concern the agent; each is valid by itself.

    ``certificate`` holds the paths of the certificate and of its key. ``user_caps`` has the order of
    :class:`isthmus.a2a.server.users.users.Caps`, up to ``user_max_usd_a_day``.
    """

    host: str
    port: int
    token_file: Path | None
    public_url: str | None
    certificate: tuple[Path, Path] | None
    insecure_http: bool
    workspace: Path | None
    allowed_workspaces: tuple[Path, ...]
    allowed_pushes: tuple[str, ...]
    user_caps: tuple[int | None, ...]
    allow_client_mcp: bool
    max_approval_mode: str
    user_tier: str | None
    strict_extension: bool
    optional_extension: bool
    progress_text: bool
    log_format: str
    log_level: str
    user_max_usd_a_day: float | None = None
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may send requests."""
    agent: "HostedCommand | None" = None
    """Command of another agent, which speaks ACP and is served instead of our own."""
    has_page: bool = False
    """Whether the workbench is served, too."""
    opens_page: bool = False
    """Whether the page is opened in the local user's browser."""
    sign_in: "SignIn | None" = None
    """Issuer whose users are let in, too."""
    audit_log: Path | None = None
    placement: "Placement | None" = None
    """Tasks that run here; None for all."""
    repositories: "Mapping[str, RepositoryUrl]" = field(default_factory=dict[str, "RepositoryUrl"])
    """Repositories in which sessions may work, by name."""
    drain_seconds: float = 0.0
    """Maximum time in seconds for running tasks to end after SIGTERM."""
    telemetry: TelemetryOptions = TelemetryOptions()

    @property
    def serving(self) -> ServingOptions:
        """Options that are the same for every agent."""
        return ServingOptions(
            certificate=self.certificate,
            insecure_http=self.insecure_http,
            pushes_to=self.allowed_pushes,
            sign_in=self.sign_in,
            audit_log=self.audit_log,
            drain_seconds=self.drain_seconds,
            telemetry=self.telemetry,
            names=NAMES,
        )
