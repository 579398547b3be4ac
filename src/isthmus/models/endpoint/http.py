"""The HTTP client for the providers' SDKs, and the conversion of its failures to errors.

The environment of the process is ignored: proxies and certificates come from a given mapping, and an address on this
machine is never reached through a proxy. Every wait has a deadline.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from isthmus.models.endpoint.endpoint import ModelEndpoint
from isthmus.models.endpoint.failure import hide_secrets
from isthmus.models.port.base import ModelError, ModelErrorKind
from isthmus.network.client_tls import ClientTls, client_tls
from isthmus.network.handshakes import close_cancelled_handshake
from isthmus.record import record

if TYPE_CHECKING:
    import httpx2


@record
class Timeouts:
    """Deadlines in seconds. ``idle`` is the maximum silence before the answer and between its chunks."""

    connect: float = 15.0
    idle: float = 300.0


def http_client(endpoint: ModelEndpoint, environment: Mapping[str, str], timeouts: Timeouts) -> "httpx2.AsyncClient":
    """Return a client for one endpoint; the caller closes it.

    Raises:
        ModelError: CONFIGURATION - the proxy or the certificate file of the environment cannot be used.
    """
    import httpx2

    from isthmus.network.pooled_transport import pooled_transport

    limit = httpx2.Timeout(timeouts.idle, connect=timeouts.connect, pool=timeouts.connect)

    async def set_deadlines(request: httpx2.Request) -> None:
        # An SDK may have set other deadlines, or none.
        request.extensions["timeout"] = limit.as_dict()

    async def refuse_pages(response: httpx2.Response) -> None:
        if response.is_success and response.headers.get("content-type", "").startswith("text/html"):
            raise ModelError(
                ModelErrorKind.CONFIGURATION,
                f"{endpoint.base_url} answers with a web page instead of {endpoint.provider.title}'s protocol. "
                f"{endpoint.advice}",
            )

    # A server runs as many turns at once as it has tasks.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    try:
        has_tls = not endpoint.is_loopback or urlsplit(endpoint.base_url).scheme != "http"
        proxy, verify = proxy_for(endpoint, environment), _certificates(endpoint, environment)
        return httpx2.AsyncClient(
            timeout=limit,
            limits=limits,
            trust_env=False,
            follow_redirects=False,
            proxy=proxy,
            verify=verify,
            transport=pooled_transport(verify, limits) if proxy is None else None,
            event_hooks={
                # Only TLS has a handshake, and following the steps of each request takes time.
                "request": [set_deadlines, *([close_cancelled_handshake] if has_tls else [])],
                "response": [refuse_pages],
            },
        )
    except (ValueError, OSError) as error:
        raise ModelError(
            ModelErrorKind.CONFIGURATION,
            f"the connection to {endpoint.base_url} cannot be set up: {hide_secrets(str(error), endpoint)}. "
            "Check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
        ) from error


def proxy_for(endpoint: ModelEndpoint, environment: Mapping[str, str]) -> str | None:
    """Return the proxy that the environment names for an endpoint; always None for this machine."""
    if endpoint.is_loopback:
        return None
    parts = urlsplit(endpoint.base_url)
    if _is_direct(parts.hostname or "", _variable(environment, "no_proxy")):
        return None
    return _variable(environment, f"{parts.scheme}_proxy") or _variable(environment, "all_proxy") or None


def connection_error(error: Exception, endpoint: ModelEndpoint, timeouts: Timeouts) -> ModelError | None:
    """Return the error for a failure below HTTP; None for another error."""
    import httpx2

    where = f"{endpoint.title} at {endpoint.base_url}"
    if isinstance(error, httpx2.ReadTimeout):
        return ModelError(ModelErrorKind.INTERRUPTED, f"{where} was silent for {timeouts.idle:g} s")
    if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.PoolTimeout)):
        if isinstance(error, httpx2.TimeoutException):
            reason = f"no answer within {timeouts.connect:g} s"
        else:
            reason = hide_secrets(str(error), endpoint) or type(error).__name__
        # Another try would meet the same certificate.
        is_final = "CERTIFICATE_VERIFY_FAILED" in str(error)
        text = f"{where} cannot be reached: {reason}. {endpoint.advice}"
        return ModelError(ModelErrorKind.UNREACHABLE, text, final=is_final)
    if isinstance(error, (httpx2.TransportError, httpx2.DecodingError)):
        reason = hide_secrets(str(error), endpoint) or type(error).__name__
        return ModelError(ModelErrorKind.INTERRUPTED, f"the connection to {where} broke off: {reason}")
    return None


def _certificates(endpoint: ModelEndpoint, environment: Mapping[str, str]) -> ClientTls:
    """Return the authorities to trust. They are read here if they are needed, so that a wrong file is an error now.

    Raises:
        OSError: they cannot be read.
    """
    tls = client_tls(environment)
    if urlsplit(endpoint.base_url).scheme != "http":
        tls.load()
    return tls


def _is_direct(host: str, no_proxy: str) -> bool:
    names = [name.strip().partition(":")[0].removeprefix("*").lstrip(".").lower() for name in no_proxy.split(",")]
    return "*" in no_proxy.split(",") or any(name and (host == name or host.endswith(f".{name}")) for name in names)


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper()) or ""
