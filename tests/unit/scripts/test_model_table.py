"""The script that makes the table of models, on small snapshots."""

import json
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import model_sources
import model_table
from model_sources import Source


def source(name: str, models: dict[str, dict[str, Any]], day: str = "2026-11-01") -> Source:
    return Source(f"package {name}", "1.0", day, models)


def sources(**given: Any) -> dict[str, Source]:
    names = {"models.dev": "fresh", "models.dev before": "old", "litellm": "litellm", "codex": "codex"}
    found = {name: source(name, {"openai": given.get(key, {})}) for name, key in names.items()}
    return found | {"genai-prices": source("genai-prices", {"openai": {"": {"models": given.get("priced", ())}}})}


def priced(name: str, *rows: tuple[str | None, dict[str, Any]]) -> Any:
    prices = [
        SimpleNamespace(
            constraint=None
            if begin is None
            else SimpleNamespace(start_date=SimpleNamespace(isoformat=partial(str, begin))),
            prices=SimpleNamespace(**values),
        )
        for begin, values in rows
    ]
    return SimpleNamespace(is_match=partial(str.__eq__, name), prices=prices)


FRESH: dict[str, Any] = {
    "tool_call": True,
    "reasoning": True,
    "reasoning_options": [{"type": "effort", "values": ["none", "low", "max"]}],
    "limit": {"context": "1e6", "output": "128000"},
    "cost": {"input": "2", "output": "10", "cache_read": "0.10"},
    "modalities": {"input": ["text", "image"]},
}


def test_a_row_joins_its_sources_and_takes_the_smaller_limit() -> None:
    given = sources(
        fresh={"gpt-9": FRESH},
        litellm={
            "gpt-9": {
                "max_input_tokens": 872_000,
                "max_output_tokens": 64_000,
                "deprecation_date": "2027-01-01",
                "successor_model": "openai/gpt-10",
                "supports_sampling_params": False,
            }
        },
    )
    (row,) = model_table.make_rows(given, {})
    assert row == {
        "owner": "openai",
        "id": "gpt-9",
        "window": 1_000_000,
        "input": 872_000,
        "output": 64_000,
        "thinking": "effort",
        "efforts": ["low", "max"],
        "media": ["image"],
        "sampling": False,
        "ends": "2027-01-01",
        "successor": "gpt-10",
        "prices": [{"input": "2", "output": "10", "cache_read": "0.1"}],
        "source": ["models.dev", "litellm"],
        "date": "2026-11-01",
    }


def test_prices_with_days_count_if_today_s_is_the_same_elsewhere() -> None:
    def rows(present: str) -> list[dict[str, str]]:
        each = priced(
            "gpt-9",
            (None, {"input_mtok": Decimal(9), "output_mtok": Decimal(9)}),
            ("2026-10-01", {"input_mtok": Decimal(present), "output_mtok": Decimal(10)}),
            ("2027-01-01", {"input_mtok": Decimal(4), "output_mtok": Decimal(20)}),
        )
        return model_table.make_rows(sources(fresh={"gpt-9": FRESH}, priced=[each]), {})[0]["prices"]

    assert rows("2") == [{"input": "2", "output": "10"}, {"from": "2027-01-01", "input": "4", "output": "20"}]
    assert rows("3") == [{"input": "2", "output": "10", "cache_read": "0.1"}]


def test_kinds_of_input_are_known_only_where_a_source_lists_all_of_them() -> None:
    vision = {"max_input_tokens": 5_000, "supports_function_calling": True, "supports_vision": True}
    fresh: dict[str, Any] = {
        "gpt-9": {**FRESH, "modalities": {"input": ["text"]}},
        "gpt-9-eyes": {**FRESH, "modalities": {"input": ["text"]}},
        "gpt-9-older": {key: value for key, value in FRESH.items() if key != "modalities"},
    }
    litellm: dict[str, Any] = {"gpt-9-eyes": vision, "gpt-9-other": vision}
    rows = model_table.make_rows(sources(fresh=fresh, litellm=litellm), {})
    found = {row["id"]: row.get("media") for row in rows}
    assert found == {"gpt-9": [], "gpt-9-eyes": ["image"], "gpt-9-older": None, "gpt-9-other": None}


def test_what_is_not_for_agents_or_says_the_same_under_a_date_has_no_row() -> None:
    names: list[str] = ["gpt-9", "gpt-9-2026-10-01", "gpt-realtime-9", "gpt-audio-9"]
    fresh: dict[str, Any] = dict.fromkeys(names, FRESH)
    fresh["gpt-9-2026-11-01"] = {**FRESH, "cost": {"input": "3", "output": "10"}}
    fresh["gpt-chat"] = {**FRESH, "tool_call": False}
    assert [row["id"] for row in model_table.make_rows(sources(fresh=fresh), {})] == ["gpt-9", "gpt-9-2026-11-01"]


def test_a_model_that_only_older_sources_have_is_deprecated_and_kept() -> None:
    (row,) = model_table.make_rows(sources(old={"gpt-9": FRESH}), {})
    assert row["deprecated"] is True
    before = {"openai:gpt-8": {"owner": "openai", "id": "gpt-8", "window": 5_000, "date": "2025-01-01"}}
    kept = model_table.make_rows(sources(fresh={"gpt-9": FRESH}), before)
    assert [(each["id"], each["date"]) for each in kept] == [("gpt-8", "2025-01-01"), ("gpt-9", "2026-11-01")]


def test_the_changes_are_new_models_and_other_facts() -> None:
    (row,) = model_table.make_rows(sources(fresh={"gpt-9": FRESH}), {})
    assert list(model_table.differences({}, [row])) == ["new: openai:gpt-9"]
    before = {"openai:gpt-9": {**row, "output": 4_096, "date": "2025-01-01"}}
    assert list(model_table.differences(before, [row])) == ["openai:gpt-9: output was 4096, is 128000"]
    assert not list(model_table.differences({"openai:gpt-9": {**row, "date": "2025-01-01"}}, [row]))
    text = model_table.as_text(sources(), [row])
    assert json.loads(text)["models"] == [row]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("{a:1e6,\"b-c\":[!0,!1,null],d:'it\\'s'}rest", {"a": "1e6", "b-c": [True, False, None], "d": "it's"}),
        ("{a:{b:.5},c:-2}", {"a": {"b": ".5"}, "c": "-2"}),
    ],
)
def test_a_literal_of_a_program_is_read_without_running_it(literal: str, value: Any) -> None:
    assert model_sources._literal(literal, 0)[0] == value  # pyright: ignore[reportPrivateUsage]


def test_the_table_is_what_the_script_writes() -> None:
    path = Path(model_table.TABLE)
    whole = json.loads(path.read_text(encoding="utf-8"))
    found = {name: Source(**each, models={}) for name, each in whole["sources"].items()}
    assert model_table.as_text(found, whole["models"]) == path.read_text(encoding="utf-8")
