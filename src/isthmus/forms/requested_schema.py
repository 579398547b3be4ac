"""Conversion between a form and the schema with which a server requests it. Pure.

A form is flat: texts, numbers, yes or no, one choice or several. Other parts of a schema are ignored, such as patterns,
which could run forever, and references.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from isthmus.forms.form import FORMATS, FieldKind, Form, FormChoice, FormError, FormField, one_line

REQUESTED_SCHEMA = "requested_schema"
"""Key of a form's schema in the input parameters of the question's tool call."""
MAXIMUM_FIELDS = 50
MAXIMUM_CHOICES = 200
"""Maximum number of choices of one field."""

_KEPT = {
    FieldKind.TEXT: ("minLength", "maxLength", "format"),
    FieldKind.NUMBER: ("minimum", "maximum"),
    FieldKind.INTEGER: ("minimum", "maximum"),
    FieldKind.BOOLEAN: (),
    FieldKind.CHOICE: (),
    FieldKind.CHOICES: ("minItems", "maxItems"),
}


def form_of(schema: Mapping[str, Any]) -> Form:
    """Return the form for a requested schema.

    Raises:
        FormError: it is not a flat form, or too large.
    """
    properties: object = schema.get("properties")
    if not isinstance(properties, Mapping):
        raise FormError("the requested schema has no properties")
    named = cast("Mapping[str, object]", properties)
    if len(named) > MAXIMUM_FIELDS:
        raise FormError(f"the form has {len(named)} fields; at most {MAXIMUM_FIELDS} are allowed")
    listed: object = schema.get("required")
    required = cast("Sequence[object]", listed) if isinstance(listed, (list, tuple)) else ()
    return Form(tuple(_field(name, value, is_required=name in required) for name, value in named.items()))


def requested_schema(form: Form) -> Mapping[str, Any]:
    """Return the schema of a form; `form_of` returns the same form for it."""
    properties = {field.name: _describe(field) for field in form.fields}
    required = [field.name for field in form.fields if field.is_required]
    return {"type": "object", "properties": properties, "required": required}


def _describe(field: FormField) -> Mapping[str, Any]:
    choices = [
        {"const": choice.value, "title": choice.title}
        | ({"description": choice.description} if choice.description else {})
        for choice in field.choices
    ]
    described: dict[str, Any] = {key: field.schema[key] for key in _KEPT[field.kind] if key in field.schema}
    match field.kind:
        case FieldKind.CHOICE:
            described |= {"type": "string", "oneOf": choices}
        case FieldKind.CHOICES:
            described |= {"type": "array", "items": {"anyOf": choices}}
        case _:
            described["type"] = field.kind.value
    optional = {"title": field.title or None, "description": field.description or None, "default": field.default}
    return described | {key: value for key, value in optional.items() if value is not None}


def _field(name: str, value: object, *, is_required: bool) -> FormField:
    if not isinstance(value, Mapping):
        raise FormError(f"the field {one_line(name)} is not described by an object")
    described = cast("Mapping[str, Any]", value)
    kind, choices = _kind(name, described)
    schema: dict[str, Any] = {"type": kind.value}
    if kind is FieldKind.CHOICE:
        schema = {"enum": [choice.value for choice in choices]}
    elif kind is FieldKind.CHOICES:
        values = [choice.value for choice in choices]
        schema = {"type": "array", "uniqueItems": True, "items": {"enum": values}}
    for key in _KEPT[kind]:
        bound: object = described.get(key)
        is_number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
        if (key == "format" and isinstance(bound, str) and bound in FORMATS) or (key != "format" and is_number):
            schema[key] = bound
    field = FormField(
        name,
        kind,
        _text(described.get("title")),
        _text(described.get("description")),
        is_required,
        schema,
        choices,
    )
    default: object = described.get("default")
    if default is None or field.problem(default) is not None:
        return field
    if kind is FieldKind.INTEGER:
        default = int(cast("float", default))  # JSON does not distinguish 2 and 2.0.
    return FormField(name, kind, field.title, field.description, is_required, schema, choices, default)


def _kind(name: str, described: Mapping[str, Any]) -> tuple[FieldKind, tuple[FormChoice, ...]]:
    stated: object = described.get("type")
    if isinstance(stated, list):
        stated = next((item for item in cast("list[object]", stated) if item != "null"), None)
    if stated in ("string", None) and (choices := _choices(name, described)):
        return FieldKind.CHOICE, choices
    if stated == "array":
        items: object = described.get("items")
        choices = _choices(name, cast("Mapping[str, Any]", items)) if isinstance(items, Mapping) else ()
        if choices:
            return FieldKind.CHOICES, choices
    for kind in (FieldKind.TEXT, FieldKind.NUMBER, FieldKind.INTEGER, FieldKind.BOOLEAN):
        if stated == kind.value:
            return kind, ()
    raise FormError(
        f"the field {one_line(name)} is of the type {one_line(str(stated))}; "
        "expected a text, a number, yes or no, or choices"
    )


def _choices(name: str, described: Mapping[str, Any]) -> tuple[FormChoice, ...]:
    """Return the choices of an enumeration, in any form that a revision of MCP defines for it."""
    found: list[FormChoice] = []
    values: object = described.get("enum")
    if isinstance(values, list):
        listed: object = described.get("enumNames")
        titles = cast("list[object]", listed) if isinstance(listed, list) else []
        for index, value in enumerate(cast("list[object]", values)):
            title = titles[index] if index < len(titles) else value
            if isinstance(value, str):
                found.append(FormChoice(value, _text(title) or one_line(value)))
    for key in ("oneOf", "anyOf"):
        entries: object = described.get(key)
        if not found and isinstance(entries, list):
            for entry in cast("list[object]", entries):
                if isinstance(entry, Mapping):
                    one = cast("Mapping[str, object]", entry)
                    if isinstance(value := one.get("const"), str):
                        title = _text(one.get("title")) or one_line(value)
                        found.append(FormChoice(value, title, _text(one.get("description"))))
    if len(found) > MAXIMUM_CHOICES:
        raise FormError(f"the field {one_line(name)} has {len(found)} choices; at most {MAXIMUM_CHOICES} are allowed")
    return tuple(found)


def _text(value: object) -> str:
    return one_line(value).strip() if isinstance(value, str) else ""
