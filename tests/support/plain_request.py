"""One HTTP request as the standard library sends it, on a connection of its own."""

import http.client
import ssl


def plain_request(
    port: int, method: str, path: str, headers: dict[str, str], body: str = "", tls: ssl.SSLContext | None = None
) -> tuple[int, str]:
    """Return status and body of a request on a connection of its own."""
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    else:
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=tls)
    try:
        connection.request(method, path, body.encode(), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
