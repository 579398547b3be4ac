"""Options of an agent that a Python program serves, and their form for the parts of a server."""

import math
import re
from collections.abc import Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.a2a.options import TEXT_MODES, Identity, ServerOptions, Skill
from isthmus.a2a.server.users.users import Caps
from isthmus.a2a.serving.names import ServingError
from isthmus.a2a.serving.options import ServingOptions
from isthmus.a2a.serving.telemetry import TelemetryOptions
from isthmus.a2a.serving.users import SignIn
from isthmus.a2a.token_file import TOKEN_FILE
from isthmus.encoding.codec import JsonObject
from isthmus.engine.port.placement import LABELS, Placement, is_label
from isthmus.files.locations import data_directory
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.a2a.server.users.auth import Authenticate


@record
class Hosting:
    """Options of a served agent.

    Users whose tokens were made with ``isthmus serve token add NAME --data-dir FOLDER`` are let in when ``workspaces``
    says where they may work. Several processes, also on several machines, serve one agent if they have the same
    ``journal``, tokens and workspaces.
    """

    name: str = "Agent"
    description: str = "An agent served by Isthmus."
    version: str = "1"
    skills: tuple[Skill, ...] = ()
    folder: Path | None = None
    """Folder of the journal and the token; by default one for agents of this name in the user's data folder.

    Two agents never share a folder: the folder of an agent with another name is refused, except for ``former_names``.
    """
    workspace: Path | None = None
    """Folder for sessions that name none; by default the current one."""
    workspaces: tuple[Path, ...] = ()
    """Folders in and below which sessions may work.

    Empty: anywhere, or in ``workspace`` with ``authenticate`` or ``sign_in``.
    """
    token: str | None = field(default=None, repr=False)
    """Bearer token of the owner, instead of the one in the token file."""
    public_url: str | None = None
    hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages, such as ``https://app.example.org``, that may send requests with a token."""
    requires_extension: bool = False
    """Whether the card requires clients to speak the development-tool extension; other clients are served anyway."""
    pushes_to: tuple[str, ...] = ()
    """Private names and networks that push notifications may go to, besides all public ones."""
    former_names: tuple[str, ...] = ()
    authenticate: "Authenticate | None" = None
    """Async function that authenticates requests instead of tokens, in a program that knows its users already.

    It takes a :class:`~isthmus.a2a.server.users.auth.RequestHead` and returns the user's name (empty for the owner),
    or None to refuse.
    """
    security_schemes: Mapping[str, JsonObject] | None = None
    """Security schemes in the card, by name, as OpenAPI writes them; ``{}``: none is needed, None: a bearer token."""
    input_modes: tuple[str, ...] = TEXT_MODES
    """Media types that the agent reads; clients choose an agent by them."""
    output_modes: tuple[str, ...] = TEXT_MODES
    """Media types that the agent produces."""
    versions: tuple[str, ...] = ("0.3", "1.0")
    """Versions of A2A whose members the card has when a request states none; both versions are always served.

    A card checker that allows no unknown members needs ``("1.0",)``.
    """
    server: ServerOptions | None = field(default=None)
    """All other options of the server; token, hosts, public_url, allowed_origins and identity are filled in."""
    token_file: Path | None = None
    """File with the owner's token, created if missing; by default ``serve-token`` in the folder."""
    journal: str | None = field(default=None, repr=False)
    """URL of the PostgreSQL database that has the journal, ``postgresql://USER@HOST/NAME``; None: a file in the folder.

    Processes with the same database share their tasks: any of them answers for any task and goes on with it.
    """
    slots: int | None = None
    """Maximum number of tasks at work in this process; further ones wait, and users take turns. None: any number."""
    labels: tuple[str, ...] = ()
    """Labels of this process, which runs the tasks of their ``workspace_labels``, too."""
    workspace_labels: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """Labels by absolute folder: tasks in it and below run only in processes that have the label."""
    lease_seconds: float = 20.0
    """Time in seconds after which others go on with the tasks of a process that hangs or is cut off; 1 to 3600."""
    sign_in: SignIn | None = None
    """OpenID Connect issuer whose users are let in besides those with tokens of the server."""
    audit_log: Path | None = None
    """File to which a line of JSON is appended for each request: who did what, and how it ended."""
    user_caps: Caps | None = None
    """Limits of users whose token has none of its own, instead of those in ``server``; the owner has no limits."""
    reports_tokens: bool = False
    reports_costs: bool = False
    """Whether the agent yields a ModelUsed for each request to a model; only then can model tokens be limited."""
    telemetry: TelemetryOptions = TelemetryOptions()
    """Options of the page /metrics, and of traces and metrics by OpenTelemetry."""
    drain_seconds: float = 0.0
    """Maximum time in seconds for running tasks to end after SIGTERM, or before the application is closed."""
    certificate: tuple[Path, Path] | None = None
    """PEM files of a certificate, with its issuers after it, and of its key: ``serve`` speaks https alone."""
    insecure_http: bool = False
    """Whether ``serve`` may speak http to other machines: tokens and texts can then be read on the way."""

    def data_folder(self) -> Path:
        """Return the folder of the journal and the token."""
        word = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") or "agent"
        return self.folder if self.folder is not None else data_directory() / "agents" / word

    def token_path(self) -> Path:
        """Return the file with the owner's token."""
        return self.token_file or self.data_folder() / TOKEN_FILE

    def roots(self) -> tuple[Path, ...]:
        """Return the folders in and below which sessions may work; empty for any folder."""
        is_for_others = self.authenticate is not None or self.sign_in is not None
        found = self.workspaces or ((self.default_workspace(),) if is_for_others else ())
        return (*found, *self.workspace_labels) if found else ()

    def default_workspace(self) -> Path:
        """Return the folder of sessions that name none."""
        return (self.workspace or Path.cwd()).resolve()

    def placement(self) -> Placement:
        """Return the part of this process in running tasks."""
        folders = tuple((folder.resolve(), label) for folder, label in self.workspace_labels.items())
        return Placement(self.slots, self.labels, folders, self.lease_seconds)

    def serving(self) -> ServingOptions:
        """Return the options that are the same for every agent."""
        return ServingOptions(
            certificate=self.certificate,
            insecure_http=self.insecure_http,
            pushes_to=self.pushes_to,
            sign_in=self.sign_in,
            audit_log=self.audit_log,
            drain_seconds=self.drain_seconds,
            telemetry=self.telemetry,
        )

    def server_options(self, token: str) -> ServerOptions:
        """Return the options of the A2A server; ``token`` is the owner's, empty for none."""
        options = self.server or ServerOptions(token)
        identity = Identity(
            self.name,
            self.description,
            self.version,
            self.skills,
            self.requires_extension,
            self.security_schemes,
            self.versions,
            self.input_modes,
            self.output_modes,
            default_workspace=True,
        )
        caps = self.user_caps or options.user_caps
        return replace(
            options,
            token=token,
            hosts=self.hosts,
            public_url=self.public_url,
            allowed_origins=self.allowed_origins,
            identity=identity,
            user_caps=caps,
        )

    def check(self) -> None:
        """Check the options by themselves and against each other.

        Raises:
            ServingError: one is invalid, or two contradict each other.
        """
        if self.authenticate is not None and self.sign_in is not None:
            raise ServingError(
                "sign_in: with authenticate no token of the server or of an issuer is looked at; give one of the two"
            )
        if self.sign_in is not None and not self.sign_in.audience:
            raise ServingError("sign_in: its audience is empty, so that a JWT for any other program would be accepted")
        _check_number("slots", self.slots, 1)
        _check_number("lease_seconds", self.lease_seconds, 1, 3600)
        _check_number("drain_seconds", self.drain_seconds, 0, 86_400)
        _check_number("telemetry.metrics_users", self.telemetry.metrics_users, 0, 100)
        caps = self.user_caps or Caps()
        for each in fields(caps):
            least = 0.01 if each.name == "max_usd_a_day" else 1
            _check_number(f"user_caps.{each.name}", getattr(caps, each.name), least)
        for label in (*self.labels, *self.workspace_labels.values()):
            if not is_label(label):
                raise ServingError(f"label {label!r}: expected {LABELS}, such as gpu")
        for folder in self.workspace_labels:
            if not folder.is_absolute():
                raise ServingError(f"workspace_labels: {str(folder)!r}: expected the absolute path of a folder")


def _check_number(name: str, value: float | None, least: float, most: float = math.inf) -> None:
    if value is None or least <= value <= most:
        return
    raise ServingError(f"{name}: {value}; expected {least} or more" + (f", up to {most}" if most < math.inf else ""))
