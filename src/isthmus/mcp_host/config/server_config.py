"""The configuration of one MCP server in a settings file, decoded (Gemini CLI: "Configuration Properties").

Pure: takes parsed JSON and variables, returns frozen data or an error that names the faulty key. Not here: the files
and their order, see :mod:`isthmus.mcp_host.config.workspace_config`.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from isthmus.errors import DecodeError
from isthmus.mcp_host.config.entry_reader import Entry, ServerConfigError
from isthmus.mcp_host.config.oauth_settings import OAuthSettings, decode_oauth
from isthmus.mcp_host.config.shell_variables import ShellVariables
from isthmus.mcp_host.config.variables import MODEL_KEYS
from isthmus.network.loopback import is_loopback
from isthmus.record import record
from isthmus.sandbox.policy import WithSandbox, decode_policy


class Origin(Enum):
    """Origin of a server's configuration. A project's files are only as trusted as its folder."""

    SYSTEM = "system"
    """The settings file of the machine's administrator."""
    USER = "user"
    PROJECT = "project"
    MCP_JSON = ".mcp.json"
    RUN = "--mcp-config"
    """Named on the command line of this run, in a file that anybody may have written."""
    CLIENT = "client"
    """Named by URL in a client's AgentSettings, for one task."""

    @property
    def is_own(self) -> bool:
        """Whether the configuration may give rights: it is the user's own, or the administrator's."""
        return self in (Origin.USER, Origin.SYSTEM)

    @property
    def is_of_project(self) -> bool:
        """Whether the configuration is from the files of the project."""
        return self in (Origin.PROJECT, Origin.MCP_JSON)


@record
class StdioEndpoint:
    """A program that speaks MCP on its standard streams. ``env`` is added to the environment that it inherits."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path

    @property
    def transport(self) -> str:
        """The name of the transport: ``stdio``."""
        return "stdio"


class HttpKind(Enum):
    """The transport to a URL."""

    STREAMABLE = "http"
    SSE = "sse"
    PROBE = "http or sse"
    """Streamable HTTP is tried once, then SSE."""


@record
class HttpEndpoint:
    """A URL at which a server speaks MCP; ``headers`` are sent with every request."""

    url: str
    kind: HttpKind
    headers: Mapping[str, str]

    @property
    def transport(self) -> str:
        """The name of the transport: ``http`` or ``sse``; both while it is not known."""
        return self.kind.value

    @property
    def host(self) -> str:
        """The host of the URL, with the port if it names one; empty if the URL has none."""
        try:
            return urlsplit(self.url).netloc.rpartition("@")[2].lower()
        except ValueError:
            return ""

    @property
    def host_name(self) -> str:
        """The host of the URL without a port, in lower case; empty if the URL has none."""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""


Endpoint: TypeAlias = StdioEndpoint | HttpEndpoint


REQUIRED = "required"
"""Key of the setting that no turn begins before the server is connected."""
LONGEST_TIMEOUT = 10**12
"""Maximum timeout in milliseconds."""
DISCOVERED, GOOGLE_CREDENTIALS, IMPERSONATION = AUTH_PROVIDERS = (
    "dynamic_discovery",
    "google_credentials",
    "service_account_impersonation",
)
"""Ways to log in: OAuth, Google's Application Default Credentials, or a Google service account that is impersonated
with these credentials."""


@record
class ServerConfig:
    """The configuration of one server.

    ``timeout`` is in seconds; None means 30 s to connect and to list, and 600 s of silence in a call. ``trust`` (no
    confirmations) is accepted only from the user's own file. ``include_tools`` None includes all tools. ``lazy``: only
    the first call starts the server. ``always_load``: the model gets the schemas of its tools from the beginning,
    regardless of their number. ``required``: no turn begins without the server. ``sandbox`` is the policy of the
    sandbox of its program; None for no sandbox. ``headers_helper``: a shell command that prints further headers,
    never from a project's file. ``inherits`` is the rule for the variables of the user's shell that its program gets;
    None for a few of them alone. ``warnings`` are for the user. ``source`` is the settings file; None for a client's
    server. ``variables`` are the names and values of the variables that were expanded.
    """

    name: str
    origin: Origin
    endpoint: Endpoint
    source: Path | None = None
    timeout: float | None = None
    trust: bool = False
    include_tools: tuple[str, ...] | None = None
    exclude_tools: tuple[str, ...] = ()
    description: str = ""
    lazy: bool = False
    always_load: bool = False
    required: bool = False
    sandbox: WithSandbox = None
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    auth_provider: str = DISCOVERED
    headers_helper: str | None = None
    inherits: ShellVariables | None = None
    target_audience: str | None = None
    target_service_account: str | None = None
    warnings: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def is_remote(self) -> bool:
        """Whether the server is at a URL of another machine; also where the URL names no host that can be read."""
        return isinstance(self.endpoint, HttpEndpoint) and not is_loopback(self.endpoint.host_name)

    @property
    def connect_seconds(self) -> float:
        """Maximum time in seconds to connect, and for each listing."""
        return self.timeout or 30.0

    @property
    def silence_seconds(self) -> float:
        """Maximum time in seconds without an answer to a call or progress of it."""
        return self.timeout or 600.0


@record
class ConfigContext:
    """The context of a configuration: its origin and file, the workspace, and the variables for its placeholders."""

    origin: Origin
    source: Path
    workspace: Path
    variables: Mapping[str, str]
    inherits: ShellVariables = ShellVariables()
    """The rule for the variables of the shell, which counts for servers of the user's own settings."""


def decode_server(name: str, value: object, context: ConfigContext) -> ServerConfig:
    """Return the configuration of the server `name` from its entry `value` in ``mcpServers``.

    Raises:
        ServerConfigError: a property has the wrong type, command, url and httpUrl are all missing, or a variable that
            the endpoint needs is not set.
    """
    entry = Entry(f"{context.source}: mcpServers.{name}", value, context.variables)
    endpoint = _endpoint(entry, context.workspace)
    timeout = entry.number("timeout")
    if timeout is not None and not 0 < timeout <= LONGEST_TIMEOUT:  # also not a number (NaN)
        raise entry.error("timeout", "a number of milliseconds above 0", timeout)
    trust = entry.boolean("trust")
    if trust and not context.origin.is_own:
        entry.warnings.append("trust is ignored outside your own settings file; its tools need your approval")
    helper = _headers_helper(entry, endpoint, context.origin)
    oauth = decode_oauth(entry, is_own=context.origin.is_own)
    entry.boolean("disabled")  # checks the type; `workspace_config` uses the value
    provider = _auth_provider(entry, endpoint, oauth, context.origin)
    include = entry.strings("includeTools")
    if context.origin.is_of_project and (keys := sorted(MODEL_KEYS & entry.filled.keys())):
        raise ServerConfigError(
            f"{entry.where}: it uses ${keys[0]}, the key of your model's provider, which is allowed in your own "
            "settings file only; configure the server there, or give it a key of its own"
        )
    return ServerConfig(
        name=name,
        origin=context.origin,
        endpoint=endpoint,
        source=context.source,
        inherits=context.inherits if context.origin.is_own else None,
        timeout=None if timeout is None else timeout / 1000,
        trust=trust and context.origin.is_own,
        include_tools=include,
        exclude_tools=entry.strings("excludeTools") or (),
        description=entry.string("description") or "",
        lazy=entry.boolean("lazy"),
        always_load=entry.boolean("alwaysLoad"),
        required=entry.boolean(REQUIRED),
        sandbox=_sandbox(entry, endpoint),
        oauth=oauth,
        auth_provider=provider,
        headers_helper=helper,
        target_audience=entry.optional("targetAudience"),
        target_service_account=entry.optional("targetServiceAccount"),
        warnings=(*entry.warnings, *entry.misspellings()),  # after all reads
        variables=tuple(entry.filled.items()),
    )


def _endpoint(entry: Entry, workspace: Path) -> Endpoint:
    kind = entry.string("type")
    command, url, http_url = entry.string("command"), entry.string("url"), entry.string("httpUrl")
    match kind:
        case None:
            pass
        case "stdio" if not command:
            raise entry.error("command", 'a program, since type is "stdio"', None)
        case "stdio":
            url = http_url = None
        case "http" | "streamable-http" | "streamableHttp" | "sse" if not (url or http_url):
            raise entry.error("url", f"a URL, since type is {kind!r}", None)
        case "http" | "streamable-http" | "streamableHttp":
            return _http(entry, "httpUrl" if http_url else "url", HttpKind.STREAMABLE)
        case "sse":
            return _http(entry, "url" if url else "httpUrl", HttpKind.SSE)
        case _:
            raise entry.error("type", "one of stdio, http, sse", kind)
    if http_url:
        return _http(entry, "httpUrl", HttpKind.STREAMABLE)
    if url:
        return _http(entry, "url", HttpKind.PROBE)
    if command:
        return _stdio(entry, workspace)
    raise ServerConfigError(
        f"{entry.where}: expected one of command (a program), url (an endpoint) and httpUrl (a streamable HTTP "
        f"endpoint); received none of them{entry.present_keys()}"
    )


def _stdio(entry: Entry, workspace: Path) -> StdioEndpoint:
    cwd = Path(entry.required("cwd") if entry.string("cwd") else ".").expanduser()
    # Relative to the workspace: for a project's file it is the folder with .gemini, for the user's the working folder.
    return StdioEndpoint(
        command=entry.for_program("command", entry.string("command") or "", is_error=True),
        args=tuple(entry.for_program(f"args[{index}]", item) for index, item in enumerate(entry.strings("args") or ())),
        env={name: entry.for_program(f"env.{name}", item) for name, item in entry.texts("env").items()},
        cwd=workspace / cwd,
    )


def _http(entry: Entry, key: str, kind: HttpKind) -> HttpEndpoint:
    url = entry.required(key)
    if not url.lower().startswith(("http://", "https://")):
        # Do not quote the expanded value: a variable may contain a secret.
        received = entry.string(key) or ""
        raise entry.error(key, "a URL that begins with http:// or https://", received.partition("?")[0])
    headers = {
        name: entry.expanded(f"headers.{name}", item, is_error=True) for name, item in entry.texts("headers").items()
    }
    for name, item in headers.items():
        if any(character in name + item for character in "\r\n\0"):
            raise ServerConfigError(f"{entry.where}.headers.{name}: expected one line, received a line break or NUL")
    return HttpEndpoint(url, kind, headers)


def _headers_helper(entry: Entry, endpoint: Endpoint, origin: Origin) -> str | None:
    command = (entry.string("headersHelper") or "").strip()
    if not command:
        return None
    if not origin.is_own:
        raise ServerConfigError(
            f"{entry.where}.headersHelper: it is allowed in your own settings file only, because it is a command that "
            "gives away what you log in with"
        )
    if isinstance(endpoint, StdioEndpoint):
        entry.warnings.append("headersHelper is ignored for a program; it applies only to URLs")
        return None
    return command


def _sandbox(entry: Entry, endpoint: Endpoint) -> WithSandbox:
    try:
        policy = decode_policy(entry.raw("sandbox"), f"{entry.where}.sandbox")
    except DecodeError as error:
        raise ServerConfigError(str(error)) from error
    if policy is None:
        return None
    if isinstance(endpoint, HttpEndpoint):
        entry.warnings.append("sandbox is ignored for a URL; it applies only to local programs")
        return None
    entry.warnings.extend(policy.notes)
    variables = tuple(
        (name, entry.expanded(f"sandbox.environment.{name}", value, is_error=False)) for name, value in policy.variables
    )
    return replace(policy, variables=variables)


def _auth_provider(entry: Entry, endpoint: Endpoint, oauth: OAuthSettings, origin: Origin) -> str:
    provider = entry.string("authProviderType") or DISCOVERED
    if provider not in AUTH_PROVIDERS:
        raise entry.error("authProviderType", f"one of {', '.join(AUTH_PROVIDERS)}", provider)
    if provider == DISCOVERED:
        return provider
    if isinstance(endpoint, StdioEndpoint):
        raise entry.error("url", f"a URL, since authProviderType is {provider}", None)
    if provider == GOOGLE_CREDENTIALS and not oauth.scopes:
        raise entry.error("oauth.scopes", "the scopes that google_credentials needs", None)
    if provider == IMPERSONATION:
        for key, meaning in (
            ("targetAudience", "the OAuth client id that protects the server"),
            ("targetServiceAccount", "the e-mail address of the service account"),
        ):
            if not entry.string(key):
                raise entry.error(key, f"{meaning}, since authProviderType is {provider}", None)
    host = urlsplit(endpoint.url).hostname or ""
    if not origin.is_own and not f".{host}".endswith(".googleapis.com"):
        # It would send the user's Google identity to any host that the project's files name.
        raise ServerConfigError(
            f"{entry.where}.authProviderType: {provider} is allowed in your own settings file only, because it gives "
            f"{host} a token of your Google account"
        )
    return provider
