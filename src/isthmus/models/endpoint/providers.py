"""The providers of models: their names, addresses, keys and accepted media.

The ``module`` of a provider defines its :class:`~isthmus.models.streaming.ProviderModel` as ``MODEL``; its default name
is the provider's. It is imported when a model is opened, so that nothing heavy is imported here.
"""

import re
from dataclasses import replace

from isthmus.media import GIF, HEIC, HEIF, JPEG, PDF, PNG, WEBP
from isthmus.models.endpoint.media_rules import AUDIO, MediaRules
from isthmus.record import record
from isthmus.runtime.model_keys import KEYS_OF_PROVIDERS, ModelKeys


@record
class Provider:
    """A provider of models.

    ``id`` is the prefix of its models in ``-m``. ``names`` matches the beginnings of names that need no prefix, and
    ``shown_names`` describes them to users. ``secrets`` are the environment variables with its key or bearer token.
    ``is_imitated`` is whether other servers speak its protocol, mostly without keys. ``own_module`` is the module for
    the provider's own server, if that speaks another protocol too, which is better.
    """

    id: str
    title: str
    secrets: ModelKeys
    base_url_variable: str
    base_url: str
    default_model: str
    names: re.Pattern[str]
    shown_names: str
    media: MediaRules
    is_imitated: bool = False
    module: str = ""
    own_module: str = ""

    def module_for(self, base_url: str) -> str:
        """Return the name of the module that defines ``MODEL`` for the server at this address."""
        if self.own_module and base_url == self.base_url:
            return self.own_module
        return self.module or f"isthmus.models.{self.id}"

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The variables that contain a key or a token."""
        return (*self.secrets.keys, *self.secrets.tokens)


GEMINI = Provider(
    "gemini",
    "Gemini",
    KEYS_OF_PROVIDERS["gemini"],
    "GOOGLE_GEMINI_BASE_URL",
    "https://generativelanguage.googleapis.com",
    "gemini-3.8-flash",
    re.compile(r"(models/)?(gemini|gemma)-", re.IGNORECASE),
    "gemini-",
    # A request has at most 20 MB; 14 MB take 18.7 MB in base64.
    MediaRules(frozenset((PNG, JPEG, WEBP, HEIC, HEIF, PDF, *AUDIO)), 14_000_000, 14_000_000),
)
ANTHROPIC = Provider(
    "anthropic",
    "Anthropic",
    KEYS_OF_PROVIDERS["anthropic"],
    "ANTHROPIC_BASE_URL",
    "https://api.anthropic.com",
    "claude-sonnet-5-5",
    re.compile(r"claude-", re.IGNORECASE),
    "claude-",
    # An image has at most 5 MiB in base64, a request at most 32 MB.
    MediaRules(frozenset((PNG, JPEG, GIF, WEBP, PDF)), 5 * 1024 * 1024 * 3 // 4, 20_000_000),
)
OPENAI = Provider(
    "openai",
    "OpenAI",
    KEYS_OF_PROVIDERS["openai"],
    "OPENAI_BASE_URL",
    "https://api.openai.com/v1",
    "gpt-6.2-sol",
    re.compile(r"(gpt-|chatgpt-|o\d)", re.IGNORECASE),
    "gpt- or o and a digit",
    # Only images: few models accept audio and documents. A request has at most 50 MB.
    MediaRules(frozenset((PNG, JPEG, GIF, WEBP)), 15_000_000, 20_000_000),
    is_imitated=True,
    module="isthmus.models.openai.chat_completions",
    own_module="isthmus.models.openai.responses",
)
RESPONSES = replace(
    OPENAI,
    id="responses",
    title="OpenAI Responses",
    names=re.compile(r"(?!)"),
    module="isthmus.models.openai.responses",
)
"""The Responses API on any server; for OpenAI's own it is used without this prefix, too."""

PROVIDERS = (GEMINI, ANTHROPIC, OPENAI)
"""All providers, in the order in which their keys are looked up."""
PREFIXED = (*PROVIDERS, RESPONSES)
"""All providers by whose id a model's name can begin."""
PREFIXED_NAMES = ", ".join(f"{provider.id}:NAME" for provider in PREFIXED)
"""Forms of ``-m`` for models of providers, for messages."""


def provider_with_id(identity: str) -> Provider | None:
    """Return the provider of this id, in any case; None if there is none."""
    return next((provider for provider in PREFIXED if provider.id == identity.lower()), None)


def secret_variables() -> frozenset[str]:
    """Return the environment variables that contain keys and tokens of providers."""
    return frozenset(variable for provider in PROVIDERS for variable in provider.secret_variables)


ANY_MEDIA = MediaRules(
    frozenset[str]().union(*(provider.media.kinds for provider in PROVIDERS)),
    max(provider.media.maximum_bytes for provider in PROVIDERS),
    max(provider.media.maximum_total for provider in PROVIDERS),
)
"""Media that any of the providers accepts, for a model without rules."""
