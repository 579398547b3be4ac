"""The environment variables that contain the keys of model providers, by the provider's id.

They are named here alone. The records of :mod:`isthmus.models.endpoint.providers`, the ``.env`` files of projects and
the check of a project's MCP servers follow from them.
"""

from collections.abc import Mapping
from itertools import chain

from isthmus.record import record


@record
class ModelKeys:
    """Variables of one provider, of which the first that is set counts: those with a key, then those with a token."""

    keys: tuple[str, ...]
    tokens: tuple[str, ...] = ()


KEYS_OF_PROVIDERS: Mapping[str, ModelKeys] = {
    "gemini": ModelKeys(("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "anthropic": ModelKeys(("ANTHROPIC_API_KEY",), ("ANTHROPIC_AUTH_TOKEN",)),
    "openai": ModelKeys(("OPENAI_API_KEY",)),
}
MODEL_KEY_VARIABLES = tuple(chain.from_iterable((*each.keys, *each.tokens) for each in KEYS_OF_PROVIDERS.values()))
"""All of them."""
