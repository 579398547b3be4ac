import httpx2

from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind
from isthmus.mcp_host.diagnosis.failures import explain
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.transports.endpoints import HttpWatch


def test_a_host_without_an_address_is_told_in_words_without_number_and_query() -> None:
    error = httpx2.ConnectError("[Errno -2] Name or service not known")
    endpoint = HttpEndpoint("http://nowhere.test/mcp?key=secret", HttpKind.PROBE, {})
    said = explain(error, "initialize", endpoint, ServerLog(), HttpWatch())
    assert said == "Name or service not known (http://nowhere.test/mcp)"
