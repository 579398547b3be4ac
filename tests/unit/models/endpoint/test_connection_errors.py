"""Failures below HTTP: which of them another try may mend."""

import httpx2
import pytest

from isthmus.models.endpoint.endpoint import ModelEndpoint
from isthmus.models.endpoint.http import Timeouts, connection_error
from isthmus.models.endpoint.providers import OPENAI
from isthmus.models.endpoint.retry import RetryPolicy, may_be_offline
from isthmus.models.port.base import ModelErrorKind

WHERE = ModelEndpoint(OPENAI, "https://models.example.org/v1", "secret-key")
CERTIFICATE = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)"


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (httpx2.ConnectError("[Errno -3] Temporary failure in name resolution"), ModelErrorKind.UNREACHABLE),
        (httpx2.ConnectError("[Errno 111] Connection refused"), ModelErrorKind.UNREACHABLE),
        (httpx2.ConnectTimeout(""), ModelErrorKind.UNREACHABLE),
        (httpx2.ProxyError("502 Bad Gateway"), ModelErrorKind.UNREACHABLE),
        (httpx2.ReadError("[Errno 104] Connection reset by peer"), ModelErrorKind.INTERRUPTED),
        (httpx2.WriteError("[Errno 32] Broken pipe"), ModelErrorKind.INTERRUPTED),
        (httpx2.ReadTimeout(""), ModelErrorKind.INTERRUPTED),
        (httpx2.RemoteProtocolError("peer closed connection"), ModelErrorKind.INTERRUPTED),
    ],
)
def test_a_failure_of_the_network_is_waited_for(failure: Exception, kind: ModelErrorKind) -> None:
    error = connection_error(failure, WHERE, Timeouts())
    assert error is not None
    assert (error.kind, may_be_offline(error)) == (kind, True)
    assert RetryPolicy().attempts_for(error) > 1


def test_a_certificate_of_somebody_else_ends_at_once() -> None:
    error = connection_error(httpx2.ConnectError(CERTIFICATE), WHERE, Timeouts())
    assert error is not None
    assert (error.kind, may_be_offline(error)) == (ModelErrorKind.UNREACHABLE, False)
    assert RetryPolicy().attempts_for(error) == 1


def test_a_mistake_of_ours_is_none_of_the_network() -> None:
    assert connection_error(KeyError("x"), WHERE, Timeouts()) is None
