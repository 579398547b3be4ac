"""Security schemes of an agent card in A2A 0.3 (as in OpenAPI) and in 1.0. Sans-I/O."""

from collections.abc import Collection, Mapping
from typing import Any

from isthmus.encoding.codec import JsonObject

_MEMBERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "apiKey": ("apiKeySecurityScheme", {"in": "location", "name": "name"}),
    "http": ("httpAuthSecurityScheme", {"scheme": "scheme", "bearerFormat": "bearerFormat"}),
    "oauth2": ("oauth2SecurityScheme", {"flows": "flows", "oauth2MetadataUrl": "oauth2MetadataUrl"}),
    "openIdConnect": ("openIdConnectSecurityScheme", {"openIdConnectUrl": "openIdConnectUrl"}),
    "mutualTLS": ("mtlsSecurityScheme", {}),
}
"""Member of 1.0 for each type of 0.3, and the names of its fields in both."""


def security_scheme(scheme: JsonObject, versions: Collection[str]) -> dict[str, Any]:
    """Return a security scheme, given as in 0.3, with the members that these versions have.

    Raises:
        ValueError: its type is not one of OpenAPI's.
    """
    kind = str(scheme.get("type"))
    if kind not in _MEMBERS:
        raise ValueError(f"the security scheme has the type {kind!r}; expected one of {', '.join(_MEMBERS)}")
    found = dict(scheme) if "0.3" in versions else {}
    if "1.0" in versions:
        member, names = _MEMBERS[kind]
        fields = {new: scheme[old] for old, new in names.items() if old in scheme}
        if "description" in scheme:
            fields["description"] = scheme["description"]
        if kind == "http" and str(fields.get("scheme", "")).lower() == "bearer":
            fields["scheme"] = "Bearer"
        found[member] = fields
    return found
