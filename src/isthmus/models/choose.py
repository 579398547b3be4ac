"""Choice of the model, with its reason: `-m`, the settings, keys in the environment, a local server, the demo.

The choice depends only on the arguments, and includes its reason in one sentence for the user. Nothing heavy is
imported here; :func:`open_model` imports the one required SDK.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError
from isthmus.models.endpoint.endpoint import configured_by, endpoint
from isthmus.models.endpoint.local_servers import LocalServer, find_local_server, ollama_address, served_model
from isthmus.models.endpoint.providers import GEMINI, OPENAI, PREFIXED_NAMES, PROVIDERS, Provider, provider_with_id
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.models.catalogue.facts import ModelFacts, ModelOverride
    from isthmus.models.port.base import ChatModel
    from isthmus.models.streaming import StreamOptions

FORMS = (
    f"{PREFIXED_NAMES}, ollama:NAME, scripted:FILE, demo, or a bare name that begins with "
    f"{', '.join(provider.shown_names for provider in PROVIDERS)}"
)
GEMINI_CLI_ALIASES = re.compile(r"auto(-.*)?|pro|flash|flash-lite", re.IGNORECASE)
"""Aliases that Gemini CLI's settings may contain instead of a model's name."""


@record
class ModelChoice:
    """A model and the reason for its choice. ``provider`` is the id of a provider, ``scripted`` or ``demo``.

    ``base_url`` is set if it differs from the environment's; ``script`` if the model is scripted.
    """

    provider: str
    name: str
    reason: str
    base_url: str | None = None
    script: Path | None = None


def choose(
    spec: str | None,
    settings_model: str | None,
    environment: Mapping[str, str],
    find_server: Callable[[Mapping[str, str]], LocalServer | None] = find_local_server,
    *,
    project_model: str | None = None,
) -> ModelChoice:
    """Choose a model. ``spec`` is the value of `-m`, ``settings_model`` the model in the user's settings.

    ``project_model`` is the model in a trusted project's settings; it may only name another model of the provider that
    is used anyway. Servers on this machine are asked only if nothing else decides; that takes at most 0.6 s.

    Raises:
        IsthmusError: a name has no known form, the provider has no usable key, or a script has a mistake; the text
            says what to do.
    """
    if spec is not None and spec.strip():
        return choose_by_name(spec, environment, "you chose it with -m")
    choice = _choose_by_user(settings_model, environment, find_server)
    name = _without_alias(project_model or "")
    if not name:
        return choice
    provider = _provider_of(name)
    if provider is None or provider.id != choice.provider or choice.base_url is not None:
        where = choice.name if choice.provider in ("demo", "scripted") or choice.base_url else choice.provider
        return replace(
            choice, reason=f"{choice.reason}; the project's settings name {name!r:.200}, but {where} is used"
        )
    return choose_by_name(name, environment, "the project's settings name it")


def _choose_by_user(
    settings_model: str | None,
    environment: Mapping[str, str],
    find_server: Callable[[Mapping[str, str]], LocalServer | None],
) -> ModelChoice:
    skipped = ""
    if settings_model is not None and (name := _without_alias(settings_model)):
        provider = _provider_of(name)
        if provider is None or configured_by(provider, environment) is not None:
            return choose_by_name(name, environment, "your settings name it")
        skipped = f"; your settings name {settings_model.strip()}, but {provider.secrets.keys[0]} is not set"
    for provider in PROVIDERS:
        if (variable := configured_by(provider, environment)) is not None:
            endpoint(provider, environment)  # fail now if the key or the address is not usable
            return ModelChoice(provider.id, _default_model(provider, environment), f"{variable} is set{skipped}")
    if (server := find_server(environment)) is not None:
        reason = f"{server.title} answers on this machine and no key is set{skipped}"
        return ModelChoice("openai", server.model, reason, server.base_url)
    reason = f"no key is set and no model server answers on this machine{skipped}"
    return ModelChoice("demo", "demo", reason)


def _without_alias(name: str) -> str:
    name = name.strip()
    return f"gemini:{GEMINI.default_model}" if GEMINI_CLI_ALIASES.fullmatch(name) else name


def choose_by_name(spec: str, environment: Mapping[str, str], reason: str) -> ModelChoice:
    """Return the model of a name in one of the forms of ``-m``. ``reason`` is the reason for the choice.

    Raises:
        IsthmusError: as in :func:`choose`.
    """
    spec = spec.strip()
    prefix, separator, name = spec.partition(":")
    if spec.lower() == "demo":
        return ModelChoice("demo", "demo", reason)
    if separator and prefix.lower() == "scripted" and name:
        from isthmus.models.scripted.script_file import read_script

        script = Path(name).expanduser()
        # Fail now if it has a mistake.
        read_script(script)
        return ModelChoice("scripted", script.stem, reason, script=script)
    if separator and prefix.lower() == "ollama" and name:
        return ModelChoice("openai", name, reason, f"{ollama_address(environment)}/v1")
    provider = _known_provider(spec, environment, f" ({reason})")
    if not separator or prefix.lower() != provider.id:
        name = spec if _is_bare(spec) else ""
    return ModelChoice(provider.id, name or _default_model(provider, environment), reason)


def check_name(name: str, environment: Mapping[str, str]) -> None:
    """Check that a model's name has a form of ``-m`` and a usable key, without reading files or asking servers.

    Raises:
        IsthmusError: the name has no known form, or its provider has no usable key.
    """
    spec = name.strip()
    prefix, _, rest = spec.partition(":")
    if spec.lower() != "demo" and not (rest and prefix.lower() in ("scripted", "ollama")):
        _known_provider(spec, environment, "")


def provider_of(name: str) -> Provider | None:
    """Return the provider of a model's name; None for a name without one, such as a script's."""
    spec = name.strip()
    return OPENAI if spec.lower().startswith("ollama:") else _provider_of(spec)


def open_model(
    choice: ModelChoice, environment: Mapping[str, str], options: "StreamOptions | None" = None
) -> "ChatModel":
    """Return the chosen model with its SDK imported. Takes up to 1.7 s of CPU time; call it in a thread.

    ``options`` are for its requests; a scripted model has none.

    Raises:
        ModelError: CONFIGURATION - no key, or an unusable address.
        ScriptError: the script has a mistake; the text names line and column.
    """
    provider = provider_with_id(choice.provider)
    if provider is None:
        from isthmus.models.scripted.scripted import DEMO_SCRIPT, open_scripted

        return open_scripted(choice.script or DEMO_SCRIPT)
    from isthmus.models.streaming import open_provider

    model = open_provider(provider, choice.name, environment, base_url=choice.base_url, options=options)
    model.load()
    return model


def facts_of_choice(
    choice: ModelChoice, environment: Mapping[str, str], overrides: "Mapping[str, ModelOverride]" = MappingProxyType({})
) -> "ModelFacts | None":
    """Return what the settings and the table say of a chosen model, without asking anyone; None for nothing."""
    from isthmus.models.catalogue.table import effective_facts, owner_of_endpoint

    provider = provider_with_id(choice.provider)
    if provider is None:
        return None
    try:
        where = endpoint(provider, environment, choice.base_url)
    except IsthmusError:
        return effective_facts(provider.id, choice.name, overrides)
    return effective_facts(owner_of_endpoint(provider.id, where.base_url), choice.name, overrides)


def open_agents_model(
    choice: ModelChoice,
    environment: Mapping[str, str],
    *,
    overrides: "Mapping[str, ModelOverride]" = MappingProxyType({}),
    patience: float | None = None,
    is_watched: bool = True,
) -> "ChatModel":
    """Return the chosen model, as :func:`open_model` does, with the waits for the place where it works.

    ``overrides`` are the settings' facts about models. ``patience`` is the maximum time in seconds that a request
    waits; None leaves it to ``is_watched``: where no user watches, it is longer.
    """
    from isthmus.models.endpoint.retry import PATIENT, RetryPolicy
    from isthmus.models.streaming import StreamOptions

    policy = RetryPolicy() if is_watched else PATIENT
    if patience is not None:
        policy = replace(policy, patience=patience)
    return open_model(choice, environment, StreamOptions(policy=policy, overrides=overrides))


def _known_provider(spec: str, environment: Mapping[str, str], note: str) -> Provider:
    provider = _provider_of(spec)
    if provider is None or not spec.isprintable():
        raise IsthmusError(f"no model is called {spec[:200]!r}{note}; expected {FORMS}")
    # Report now what is missing, rather than after the first prompt.
    endpoint(provider, environment)
    return provider


def _provider_of(spec: str) -> Provider | None:
    """Return the provider of a name; None if the name has another form."""
    named = provider_with_id(spec.partition(":")[0])
    return named or next((provider for provider in PROVIDERS if provider.names.match(spec)), None)


def _is_bare(spec: str) -> bool:
    return any(provider.names.match(spec) for provider in PROVIDERS)


def _default_model(provider: Provider, environment: Mapping[str, str]) -> str:
    """Return the provider's default, or the model that another server at its configured address lists."""
    base_url = environment.get(provider.base_url_variable, "").strip().rstrip("/")
    is_other = provider.is_imitated and base_url not in ("", provider.base_url)
    if is_other and (served := served_model(base_url)):
        return served
    return provider.default_model
