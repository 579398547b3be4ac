"""Answers of the workbench's API."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from isthmus.encoding.json_text import encode
from isthmus.web.http.bundle import HEADERS


def json_response(value: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer with a JSON object, which nothing on its way keeps."""
    given = {**HEADERS, "Cache-Control": "no-store", **(headers or {})}
    return Response(encode(dict(value)), status, given, "application/json")
