"""Events as the texts that their rows store. Objects that many events share are encoded once, and decoded once.

The text is the same as without that. ``tools`` of :class:`isthmus.internal_events.PromptBegun` are all tools of an
agent, and the first request of each session to a model writes them again.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from isthmus.encoding.codec import well_formed
from isthmus.encoding.compact_json import finite_encoder
from isthmus.encoding.shared_objects import SharedObjects

KEPT = 16
"""Maximum number of texts of shared objects whose objects are kept in memory."""
KEPT_CHARACTERS = 500_000
"""Length in characters of a text of shared objects above which its objects are not kept."""
_JSON = finite_encoder()
_EVENT = '{"type":"PromptBegun",'
_FIELD = ',"tools":'
"""The last field of the event. Quotes within a JSON string are escaped, so no string contains this."""


def encoded_event(value: Mapping[str, Any]) -> str:
    """Return the compact JSON of an event's JSON object.

    Raises:
        TypeError, ValueError, RecursionError: it is not JSON, or nested too deeply.
    """
    shared = [name for name, item in value.items() if item.__class__ is SharedObjects]
    if not shared:
        return _JSON(value)
    rest = _JSON({name: item for name, item in value.items() if name not in shared})
    return f"{rest[:-1]}{''.join(f',{_JSON(name)}:{value[name].text}' for name in shared)}}}"


def decoded_event(text: str) -> Any:
    """Return the JSON object of an event's text.

    Raises:
        ValueError: it is not JSON.
    """
    if text.startswith(_EVENT):
        rest, _, tools = text.partition(_FIELD)
        if tools.startswith("[{") and tools.endswith("}]}") and len(tools) <= KEPT_CHARACTERS:
            try:
                return {**json.loads(f"{rest}}}"), "tools": _shared(tools[:-1])}
            except ValueError:
                pass  # further fields follow, which another version has written
    return json.loads(text)


@lru_cache(maxsize=KEPT)
def _shared(text: str) -> SharedObjects:
    objects = json.loads(text)
    if not all(isinstance(item, dict) for item in objects):
        raise ValueError("expected a list of objects")
    return SharedObjects(map(well_formed, cast("list[dict[str, Any]]", objects)))
