"""The table of models: names that find a row, what rows say, and what becomes of them in settings."""

import re
import subprocess
import sys
import time
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from isthmus.models.catalogue import table
from isthmus.models.catalogue.facts import ModelFacts, ModelOverride, Thinking, end_of
from isthmus.models.catalogue.table import all_facts, effective_facts, facts_of, snapshot
from isthmus.models.endpoint.providers import PROVIDERS, Provider
from isthmus.models.port.base import Effort, nearest_effort
from isthmus.models.port.costs import ModelCosts

ROOT = Path(__file__).resolve().parents[3]
DAY = date(2026, 11, 30)


@pytest.mark.parametrize(
    ("owner", "name", "found"),
    [
        ("anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("anthropic", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("anthropic", "claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic", "Claude-Haiku-4-5-latest", "claude-haiku-4-5"),
        ("anthropic", "claude-opus-4.1", "claude-opus-4-1"),
        ("anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic", "anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic", "claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("gemini", "models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("gemini", "publishers/google/models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini", "gemini-3.1-flash-lite-preview", "gemini-3.1-flash-lite-preview"),
        ("openai", "gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
        ("openai", "openai/gpt-6.1-sol:free", "gpt-6.1-sol"),
        ("openai", "gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("groq", "openai/gpt-oss-120b", "openai/gpt-oss-120b"),
        ("openai", "gpt-99", None),
        ("anthropic", "gpt-5", None),
        ("anthropic", "claude-sonnet-4-5-turbo", None),
        ("openai", "", None),
    ],
)
def test_a_name_finds_its_row_in_all_forms_of_providers(owner: str, name: str, found: str | None) -> None:
    facts = facts_of(owner, name)
    assert (None if facts is None else facts.id) == found


def row(owner: str, name: str) -> ModelFacts:
    facts = facts_of(owner, name)
    assert facts is not None, name
    return facts


def costs(owner: str, name: str, day: date = DAY) -> ModelCosts:
    found = row(owner, name).costs_on(day)
    assert found is not None
    return found


def test_a_model_elsewhere_has_the_limits_of_its_row_but_not_its_prices() -> None:
    own, elsewhere = row("openai", "gpt-6.1-sol"), effective_facts("", "openai/gpt-6.1-sol", {})
    assert elsewhere is not None
    assert own.costs_on(DAY) is not None
    assert elsewhere.costs_on(DAY) is None
    assert (elsewhere.room, elsewhere.output_limit) == (own.room, own.output_limit) == (922_000, 128_000)


def test_every_default_and_every_model_of_the_documents_has_a_row() -> None:
    named = {(provider.id, provider.default_model) for provider in PROVIDERS}
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "README.zh-CN.md"]
    families = {re.split(r"\d", facts.id)[0] for facts in all_facts()}
    beginnings = "|".join(re.escape(family) for family in sorted(families) if len(family) > 3)
    names = re.compile(rf"(?<![\w.-])(?:{beginnings})\d[\w.-]*\w")
    found = {name for page in pages for name in names.findall(page.read_text(encoding="utf-8"))}
    assert len(found) >= 3
    missing = [f"{owner}:{name}" for owner, name in named if facts_of(owner, name) is None]
    missing += [name for name in sorted(found) if effective_facts("", name, {}) is None]
    assert not missing


def test_every_default_says_what_it_reads() -> None:
    media = {provider.id: row(provider.id, provider.default_model).media for provider in PROVIDERS}
    assert all(kinds is not None and "image" in kinds for kinds in media.values()), media
    assert row("openai", "o3-mini").media == frozenset()
    assert row("openai", "gpt-3.5-turbo-0125").media is None  # no catalogue lists its kinds


def test_every_row_has_an_owner_a_window_a_date_and_a_source() -> None:
    rows = list(all_facts())
    assert len(rows) > 100
    assert len({(row.owner, row.id) for row in rows}) == len(rows)
    for row in rows:
        assert row.window >= 4096, row.id
        assert row.room <= row.window
        assert date.fromisoformat(row.seen) <= snapshot().date
        assert row.sources
        assert set(row.sources) <= set(snapshot().sources)
        assert (row.thinking in (Thinking.NONE, Thinking.FIXED)) == (not row.efforts), row.id
        for dated in row.prices:
            bounds = [price.above for price in dated.costs.prices]
            assert bounds == [0, *sorted(set(bounds[1:]))]
            assert all(price.input >= 0 and price.output >= 0 for price in dated.costs.prices)


def test_prices_are_exact_and_begin_on_their_days() -> None:
    begins = [
        costs("gemini", "gemini-3.8-flash", day).prices[0].input for day in (date(2026, 12, 31), date(2027, 1, 1))
    ]
    assert begins == [Decimal("0.75"), Decimal("1.5")]
    tiers = [(price.above, price.input) for price in costs("openai", "gpt-6.1-sol").prices]
    assert tiers == [(0, Decimal(2)), (272_000, Decimal(4))]
    assert row("openai", "gpt-6.2-sol").costs_on(DAY) is None


def test_settings_override_a_row_and_make_one_for_an_unknown_model() -> None:
    overrides = {
        "gemini-3.8-flash": ModelOverride(window=100_000),
        "openai:mine": ModelOverride(50_000, 4_000, Decimal("1.1"), Decimal("2.2"), Decimal("0.1")),
    }
    known, made = (effective_facts(*name, overrides) for name in (("gemini", "gemini-3.8-flash"), ("openai", "mine")))
    assert known is not None
    assert (known.room, known.output_limit) == (100_000, 65_536)
    assert made is not None
    assert (made.room, made.output_limit, made.sources) == (50_000, 4_000, ("settings",))
    priced = made.costs_on(DAY)
    assert priced is not None
    assert priced.prices[0].cache_read == Decimal("0.1")
    assert effective_facts("openai", "other", overrides) is None


def test_an_end_is_said_with_its_day_and_successor() -> None:
    pro, old = row("gemini", "gemini-2.5-pro"), row("anthropic", "claude-3-7-sonnet")
    assert end_of(pro, DAY) == "gemini-2.5-pro ends on 2026-12-01. Its successor is gemini-3.8-flash."
    assert end_of(pro, date(2026, 12, 1)) == (
        "gemini-2.5-pro ended on 2026-12-01. Its successor is gemini-3.8-flash: choose it with -m or /model."
    )
    assert end_of(old, DAY).startswith("claude-3-7-sonnet-20250219 is deprecated")
    assert not end_of(row("anthropic", "claude-sonnet-5-5"), DAY)


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.id)
def test_no_default_has_ended(provider: Provider) -> None:
    assert not end_of(row(provider.id, provider.default_model), snapshot().date)


def test_the_nearest_effort_is_the_same_or_the_next_lower_one() -> None:
    three = (Effort.LOW, Effort.MEDIUM, Effort.HIGH)
    assert nearest_effort(Effort.MAX, three) is Effort.HIGH
    assert nearest_effort(Effort.MINIMAL, three) is Effort.LOW
    assert nearest_effort(Effort.MEDIUM, (Effort.LOW, Effort.HIGH)) is Effort.LOW
    assert nearest_effort(Effort.LOW, ()) is None


def test_the_table_is_read_in_a_few_milliseconds_and_not_at_import() -> None:
    program = "import isthmus.models.choose, isthmus.models.catalogue.table as t; print(t._rows.cache_info().currsize)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "0"
    times: list[float] = []
    for _ in range(5):
        table._rows.cache_clear()  # pyright: ignore[reportPrivateUsage]
        began = time.process_time()
        facts_of("openai", "gpt-5")
        times.append(time.process_time() - began)
    assert min(times) < 0.02
