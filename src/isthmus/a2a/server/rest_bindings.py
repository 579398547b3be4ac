"""All versions of A2A over HTTP and JSON, distinguished by their paths."""

from isthmus.a2a.server.rest import RestBinding
from isthmus.a2a.server.rest_v03 import REST_V03
from isthmus.a2a.server.rest_v1 import REST_V1


def binding_of(path: str) -> RestBinding:
    """Return the binding of a path as it was sent; the one of 1.0 for an unknown path."""
    return REST_V03 if path.startswith("/v1/") else REST_V1


def allowed_methods(path: str) -> tuple[str, ...]:
    """Return the HTTP methods of a path as it was sent; none for a path that is not of A2A."""
    found = binding_of(path).find(path)
    return () if found is None else tuple(found[1])
