"""The table of models, read when it is first needed, and the search for a row by the names that providers give.

A name may have a provider's prefix, a region, a date or a version: ``us.anthropic.claude-sonnet-4-5-20250929-v1:0``,
``models/gemini-2.5-pro`` and ``gpt-4.1-mini-2025-04-14`` find the rows of their models.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isthmus.models.catalogue.facts import DatedCosts, ModelFacts, ModelOverride, SaidLimits, Thinking
from isthmus.models.port.base import USUAL_EFFORTS, Effort
from isthmus.models.port.costs import ModelCosts, Price
from isthmus.record import record

TABLE = Path(__file__).with_name("models.json")
SEPARATE = ("anthropic", "gemini")
"""Providers that have only models of their own."""
OWNERS_OF_HOSTS: Mapping[str, str] = {
    "generativelanguage.googleapis.com": "gemini",
    "api.anthropic.com": "anthropic",
    "api.openai.com": "openai",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.x.ai": "xai",
    "api.groq.com": "groq",
}
"""Owners of rows whose prices hold for the models of a host."""

_DATE = re.compile(r"[@-](?:\d{8}|\d{4}-\d{2}-\d{2})$")
_STEPS = (
    re.compile(r"^(?:accounts/[^/]+/|publishers/[^/]+/)?models/"),
    re.compile(r"^(?:us-gov|us|eu|apac|au|jp|ca|global)\."),
    re.compile(r"^(?:anthropic|openai|google|mistral|mistralai|deepseek|xai|x-ai)[./]"),
    re.compile(r"\[\d+m\]$"),
    re.compile(r":[a-z0-9]+$"),
    re.compile(r"-v\d+$"),
    re.compile(r"@(?:latest|default)$|-latest$"),
    _DATE,
)
"""Parts that are taken from a name one after the other, until it is in the table."""


@record
class TableSource:
    """A package that the table is made of."""

    package: str
    version: str
    date: str


@record
class TableSnapshot:
    """The table's day, and its sources by the names that rows use."""

    date: date
    sources: Mapping[str, TableSource]


@lru_cache(maxsize=256)
def facts_of(owner: str, name: str) -> ModelFacts | None:
    """Return the row of a model in one of the forms of its name; None if the owner has none."""
    names = _names()
    for form in _forms(name):
        if (found := names.get((owner, form))) is not None:
            return _facts(owner, found)
    return None


def effective_facts(
    owner: str, name: str, overrides: Mapping[str, ModelOverride], said: SaidLimits | None = None
) -> ModelFacts | None:
    """Return what is known of a model: by the user's settings, otherwise its server, otherwise the table.

    Elsewhere than at an owner of the table, a model has the limits of the row with its name, but no prices: ``owner``
    is empty then. ``overrides`` are by the model's name, perhaps with a prefix ``PROVIDER:``. None if nothing is known.
    """
    facts = facts_of(owner, name) or _elsewhere(owner, name)
    if said is not None:
        facts = said.applied(facts or _made(owner, name, said.window, "server"))
    override = overrides.get(f"{owner}:{name}") or overrides.get(name)
    if override is None:
        return facts
    if facts is None:
        if override.window is None:
            return None
        facts = _made(owner, name, override.window, "settings")
    return override.applied(facts)


def _made(owner: str, name: str, window: int, source: str) -> ModelFacts:
    """Return the facts of a model without a row: whether it thinks is left to those who ask it."""
    return ModelFacts(owner, name, window, (source,), "", thinking=Thinking.EFFORT, efforts=USUAL_EFFORTS)


def _elsewhere(owner: str, name: str) -> ModelFacts | None:
    if owner in SEPARATE:
        return None
    for other in dict.fromkeys(OWNERS_OF_HOSTS.values()):
        if other != owner and (facts := facts_of(other, name)) is not None:
            return replace(facts, prices=(), ends=None, successor="", is_deprecated=False)
    return None


def owner_at(base_url: str) -> str:
    """Return the owner of the models at an address; empty for another server."""
    try:
        return owner_of_host(urlsplit(base_url).hostname or "")
    except ValueError:
        return ""


def owner_of_endpoint(provider: str, base_url: str) -> str:
    """Return the owner of a provider's models at an address: servers that imitate one have models of their own."""
    return provider if provider in SEPARATE else owner_at(base_url)


def owner_of_host(host: str) -> str:
    """Return the owner of the models on a host, such as ``api.mistral.ai``; empty for another one."""
    if host.endswith(".openai.com"):
        return "openai"
    return OWNERS_OF_HOSTS.get(host, "")


def all_facts() -> Iterator[ModelFacts]:
    """Yield every row."""
    for owner, name in _rows():
        yield _facts(owner, name)


@lru_cache(maxsize=1)
def snapshot() -> TableSnapshot:
    """Return the day and the sources of the table."""
    whole = _read()
    sources = {name: TableSource(**each) for name, each in whole["sources"].items()}
    return TableSnapshot(date.fromisoformat(whole["date"]), sources)


def _read() -> Mapping[str, Any]:
    return json.loads(TABLE.read_bytes())


@lru_cache(maxsize=1)
def _rows() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    return {(row["owner"], row["id"]): row for row in _read()["models"]}


@lru_cache(maxsize=1)
def _names() -> Mapping[tuple[str, str], str]:
    """Return the names in the table with their rows. A name without its date finds the newest one."""
    undated = {(owner, _DATE.sub("", name)): name for owner, name in sorted(_rows())}
    return undated | {(owner, name): name for owner, name in _rows()}


def _forms(name: str) -> Iterator[str]:
    form = name.strip().lower()
    yield from _spellings(form)
    for step in _STEPS:
        shorter = step.sub("", form)
        if shorter != form:
            form = shorter
            yield from _spellings(form)


def _spellings(form: str) -> Iterable[str]:
    # The first models of a version are listed with a zero, and routers write versions with dots.
    return (form, f"{form}-0", form.replace(".", "-")) if form.startswith("claude") else (form,)


@lru_cache(maxsize=256)
def _facts(owner: str, name: str) -> ModelFacts:
    row = _rows()[owner, name]
    ends = row.get("ends")
    return ModelFacts(
        owner,
        name,
        row["window"],
        tuple(row["source"]),
        row["date"],
        input_limit=row.get("input"),
        output_limit=row.get("output"),
        thinking=Thinking(row.get("thinking", Thinking.NONE)),
        efforts=tuple(map(Effort, row.get("efforts", ()))),
        default_effort=row.get("default_effort", ""),
        media=frozenset(row["media"]) if "media" in row else None,
        server_tools=frozenset(row.get("server_tools", ())),
        takes_sampling=row.get("sampling", True),
        takes_forced_calls=row.get("forced_calls", True),
        knowledge=row.get("knowledge", ""),
        ends=None if ends is None else date.fromisoformat(ends),
        successor=row.get("successor", ""),
        is_deprecated=row.get("deprecated", False),
        prices=tuple(_prices(row.get("prices", ()))),
    )


def _prices(rows: Iterable[Mapping[str, str]]) -> Iterator[DatedCosts]:
    groups: dict[str, list[Price]] = {}
    for row in rows:
        groups.setdefault(row.get("from", ""), []).append(_price(row))
    for begin, prices in sorted(groups.items()):
        yield DatedCosts(date.fromisoformat(begin) if begin else None, ModelCosts(tuple(prices)))


def _price(row: Mapping[str, str]) -> Price:
    known = {name: Decimal(value) for name, value in row.items() if name not in ("from", "above")}
    return Price(int(row.get("above", 0)), **known)
