"""A program that was started to speak on its streams, but says that it listens for HTTP."""

import pytest

from isthmus.mcp_host.diagnosis.listening import listening_at


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)", "http://127.0.0.1:8000"),
        ("Server listening at http://0.0.0.0:3000/mcp.", "http://localhost:3000/mcp"),
        ("  Local:   http://localhost:5173/", "http://localhost:5173"),
        ("listening on http://[::1]:80/sse", "http://[::1]:80/sse"),
        ("MCP Streamable HTTP Server listening on port 3001", "http://localhost:3001"),
        ("Server is running on port: 8080", "http://localhost:8080"),
        ("see https://example.com/mcp for help", None),
        ("listening " * 10_000, None),
        ("http://localhost:" * 10_000, "http://localhost"),
        ("waits", None),
    ],
)
def test_the_address_is_found_in_what_servers_print(line: str, expected: str | None) -> None:
    assert listening_at(["starting", line]) == expected
