"""All versions of A2A that are spoken over HTTP and JSON; their paths tell them apart."""

from isthmus.a2a.server.rest import RestBinding
from isthmus.a2a.server.rest_v03 import REST_V03
from isthmus.a2a.server.rest_v1 import REST_V1


def binding_of(path: str) -> RestBinding:
    """Return the binding that a path as it was sent belongs to; that of 1.0 for a path of neither."""
    return REST_V03 if path.startswith("/v1/") else REST_V1


def allowed_methods(path: str) -> tuple[str, ...]:
    """Return the HTTP methods of a path as it was sent; none for one that is no path of A2A."""
    found = binding_of(path).find(path)
    return () if found is None else tuple(found[1])
