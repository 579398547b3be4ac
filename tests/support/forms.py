"""A form with a field of every kind, as servers request it."""

from typing import Any

EVERY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 2, "maxLength": 5},
        "mail": {"type": "string", "format": "email"},
        "page": {"type": "string", "format": "uri"},
        "day": {"type": "string", "format": "date"},
        "moment": {"type": "string", "format": "date-time"},
        "count": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
        "share": {"type": "number", "maximum": 1},
        "sure": {"type": "boolean", "default": False},
        "pet": {"type": "string", "enum": ["cat", "dog"], "enumNames": ["Cat", "Dog"], "default": "dog"},
        "hero": {"type": "string", "oneOf": [{"const": "h1", "title": "Superman"}, {"const": "h2", "title": "Hulk"}]},
        "fish": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {"anyOf": [{"const": "f1", "title": "Tuna"}, {"const": "f2", "title": "Trout"}, {"const": "f3"}]},
        },
    },
    "required": ["name", "hero"],
}
