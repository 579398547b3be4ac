"""Makes the table of models of the snapshots that :mod:`model_sources` reads, and prints what changed.

A release runs it. Each row has the names of its sources and the date on which the newest of them had it. A model that
all snapshots have dropped keeps its row with the earlier date, since users may still name it. Where two sources differ,
models.dev counts; of two limits the smaller one counts, and prices with their days and sizes are from genai-prices.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from model_sources import OWNERS, Source, price_rows, read_sources

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "isthmus" / "models" / "catalogue" / "models.json"
CACHE = ROOT / ".cache" / "model-sources"
BUDGET_EFFORTS = ("low", "medium", "high")
"""Efforts that the program itself translates to a number of tokens."""
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
NOT_FOR_AGENTS = re.compile(
    r"audio|realtime|image|tts|transcribe|embed|^ft:|live|search-(preview|api)|deep-research|computer-use|robotics"
    r"|omni|lyria|voxtral|moderation|container|-instruct|learnlm|vision-preview|guard|-exp-|\.ft-|auto-review|gemini-gemma"
)
NATIVE = ("anthropic", "openai", "gemini")
"""Owners whose rows may be from one catalogue alone; that one has many names of the others that nobody offers."""
DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
DOCUMENTED_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "anthropic": {r"claude-(opus|sonnet|fable|mythos|haiku)-(4-[6-9]|[5-9])": "high"},
    "gemini": {r"gemini-3(\.1)?-(pro|flash)-preview": "high"},
    "openai": {r"o\d|gpt-5(-mini|-nano|-codex)?$": "medium"},
}
"""Efforts without a word of ours, by patterns of names, as the owners' documents say them."""


def main() -> int:
    """Write the table anew, or with ``--check`` only say what would change. Return 1 if that is something."""
    sources = read_sources(CACHE)
    before = _rows_of(TABLE) if TABLE.exists() else {}
    rows = make_rows(sources, before)
    lines = list(differences(before, rows))
    print("\n".join(lines) or "Nothing changed.")
    if "--check" not in sys.argv:
        TABLE.write_text(as_text(sources, rows), encoding="utf-8")
    return 1 if lines and "--check" in sys.argv else 0


def as_text(sources: Mapping[str, Source], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the file: its sources, and a line for each row."""
    named = {
        name: {"package": each.package, "version": each.version, "date": each.date} for name, each in sources.items()
    }
    date = max(each.date for each in sources.values())
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    head = f'{{\n "date": {json.dumps(date)},\n "sources": {json.dumps(named)},\n'
    return f'{head} "models": [\n{lines}\n ]\n}}\n'


def make_rows(sources: Mapping[str, Source], before: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the table, in the order of their owners and names."""
    found: dict[str, dict[str, Any]] = {}
    for owner in OWNERS:
        names = {name for source in sources.values() for name in source.models.get(owner, {}) if name}
        for name in sorted(names):
            if not NOT_FOR_AGENTS.search(name) and (row := _row(sources, owner, name)) is not None:
                found[f"{owner}:{name}"] = row
    found = {key: dict(row) for key, row in before.items() if key not in found} | found
    return [found[key] for key in sorted(found) if not _is_same_as_undated(found[key], found)]


def _is_same_as_undated(row: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether a dated name has a row that says what the row without the date says."""
    other = rows.get(f"{row['owner']}:{DATED.sub('', row['id'])}")
    if other is None or other is row:
        return False
    room, others_room = (each.get("input", each.get("window")) for each in (row, other))
    return room == others_room and all(row.get(name) == other.get(name) for name in ("output", "prices"))


def _row(sources: Mapping[str, Source], owner: str, name: str) -> dict[str, Any] | None:
    used = [key for key in ("models.dev", "models.dev before", "litellm", "codex") if _model(sources, key, owner, name)]
    if not used or (used == ["litellm"] and owner not in NATIVE):
        return None
    first = _model(sources, "models.dev", owner, name) or _model(sources, "models.dev before", owner, name)
    used = [key for key in used if key != "models.dev before" or "models.dev" not in used]
    other, codex = _model(sources, "litellm", owner, name), _model(sources, "codex", owner, name)
    if not (first.get("tool_call") or other.get("supports_function_calling") or codex):
        return None
    limit = first.get("limit", {})
    window = _number(limit.get("context")) or _number(other.get("max_input_tokens")) or codex.get("context_window")
    inputs = [_number(limit.get("input")), _number(other.get("max_input_tokens"))]
    outputs = [_number(limit.get("output")), _number(other.get("max_output_tokens"))]
    smaller = min((each for each in inputs if each), default=None)
    row: dict[str, Any] = {"owner": owner, "id": name, "window": window}
    if smaller is not None and window is not None and smaller < window:
        row["input"] = smaller
    row["output"] = min((each for each in outputs if each), default=None)
    row |= _thinking(owner, name, first, other, codex)
    row["media"] = _media(first, other, codex)
    row["server_tools"] = sorted(
        tool for tool in ("web_search", "url_context", "computer_use", "tool_search") if other.get(f"supports_{tool}")
    )
    for key, theirs in (("sampling", "supports_sampling_params"), ("forced_calls", "supports_forced_tool_use")):
        if other.get(theirs) is False:
            row[key] = False
    for key, value in (("knowledge", first.get("knowledge")), ("released", first.get("release_date"))):
        if value:
            row[key] = value
    if ends := other.get("deprecation_date"):
        row["ends"] = ends
        if successor := other.get("successor_model"):
            row["successor"] = successor.removeprefix(f"{owner}/")
    elif first.get("status") == "deprecated" or "models.dev before" in used:
        row["deprecated"] = True
    prices, priced_by = _prices(sources, owner, name, first, other)
    row["prices"] = prices
    row["source"] = [*used, *([priced_by] if priced_by else [])]
    row["date"] = max(sources[each].date for each in used)
    return {key: value for key, value in row.items() if value is not None and (value != [] or key == "media")}


def _media(first: Mapping[str, Any], other: Mapping[str, Any], codex: Mapping[str, Any]) -> list[str] | None:
    """Return the kinds of input beside text; None if no source lists all of them, and so none says what is missing."""
    listed = [first.get("modalities", {}).get("input"), codex.get("input_modalities")]
    if not any(listed):
        return None
    kinds = {kind for each in listed for kind in each or ()}
    kinds |= {kind for kind, key in (("image", "supports_vision"), ("pdf", "supports_pdf_input")) if other.get(key)}
    return sorted(kinds - {"text"})


def _model(sources: Mapping[str, Source], source: str, owner: str, name: str) -> Mapping[str, Any]:
    return sources[source].models.get(owner, {}).get(name, {})


def _number(value: object) -> int | None:
    try:
        return int(float(str(value))) or None
    except ValueError:
        return None


def _thinking(
    owner: str, name: str, first: Mapping[str, Any], other: Mapping[str, Any], codex: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how much a model can be told to think, and in which form."""
    options = {option["type"]: option for option in first.get("reasoning_options") or ()}
    efforts = list(options.get("effort", {}).get("values", ())) or list(other.get("reasoning_effort_levels") or ())
    efforts = efforts or _flagged(owner, other)
    efforts = efforts or [level["effort"] for level in codex.get("supported_reasoning_levels", ())]
    found: dict[str, Any] = {}
    if owner == "anthropic" and other.get("supports_adaptive_thinking") is not True and not _adapts(name):
        thinks = bool(first.get("reasoning") or other.get("supports_reasoning"))
        found = {"thinking": "budget", "efforts": list(BUDGET_EFFORTS)} if thinks else {}
    elif efforts := [effort for effort in EFFORTS if effort in efforts]:
        form = {"anthropic": "adaptive", "gemini": "level"}.get(owner, "effort")
        found = {"thinking": form, "efforts": efforts}
    elif options.get("budget_tokens"):
        found = {"thinking": "budget", "efforts": list(BUDGET_EFFORTS)}
    elif first.get("reasoning") or other.get("supports_reasoning"):
        found = _of_older(owner, name)
    default = other.get("default_reasoning_effort") or next(
        (effort for pattern, effort in DOCUMENTED_DEFAULTS.get(owner, {}).items() if re.match(pattern, name)), None
    )
    if default and found.get("thinking") in ("adaptive", "effort", "level"):
        found["default_effort"] = default
    return found


def _flagged(owner: str, other: Mapping[str, Any]) -> list[str]:
    """Return the efforts of a catalogue with a flag for each but the usual three."""
    flags = {effort: other.get(f"supports_{effort}_reasoning_effort") for effort in EFFORTS}
    if not other.get("supports_reasoning") or owner not in NATIVE or all(flag is None for flag in flags.values()):
        return []
    return [effort for effort, flag in flags.items() if flag or (effort in BUDGET_EFFORTS and flag is None)]


def _adapts(name: str) -> bool:
    match = re.match(r"claude-[a-z]+-(\d+)(?:-(\d{1,2})(?!\d))?", name)
    return match is not None and (int(match[1]), int(match[2] or 0)) >= (4, 6)


def _of_older(owner: str, name: str) -> dict[str, Any]:
    """Return the form of thinking of a model that only an earlier snapshot has, which does not say it."""
    if owner == "openai":
        # The models of ChatGPT are listed as such that reason, but take no word about it.
        return {} if "chat" in name else {"thinking": "effort", "efforts": list(BUDGET_EFFORTS)}
    if owner == "gemini" and name.startswith("gemini-3-pro"):
        return {"thinking": "level", "efforts": ["low", "high"]}
    if owner == "gemini" and name.startswith("gemma"):
        return {}
    return {"thinking": "fixed"}


def _prices(
    sources: Mapping[str, Source], owner: str, name: str, first: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[list[dict[str, str]], str]:
    rows = [row for row in price_rows(sources["genai-prices"], owner, name) if "input" in row and "output" in row]
    cost = first.get("cost", {})
    named = {"input": "input", "output": "output", "cache_read": "cache_read", "cache_write": "cache_write"}
    listed = {ours: _plain(cost[theirs]) for ours, theirs in named.items() if cost.get(theirs) is not None}
    today = max(source.date for source in sources.values())
    present = max((row.get("from", "") for row in rows if row.get("from", "") <= today), default="")
    rows = [row for row in rows if row.get("from", "") >= present]
    for row in rows:
        if row.get("from") == present:
            del row["from"]
    if rows and _agree(rows, listed):
        return rows, "genai-prices"
    if "input" in listed and "output" in listed:
        tiers = [
            {"above": _plain(tier["tier"]["size"])}
            | {ours: _plain(tier[theirs]) for ours, theirs in named.items() if tier.get(theirs) is not None}
            for tier in cost.get("tiers", ())
        ]
        return [listed, *tiers], ""
    return [], ""


def _agree(rows: list[dict[str, str]], listed: Mapping[str, str]) -> bool:
    """Return whether the price of today in one source is what the other one lists, if that lists any."""
    today = next((row for row in rows if "from" not in row and "above" not in row), None)
    return today is not None and all(
        today.get(name) == listed.get(name, today.get(name)) for name in ("input", "output")
    )


def _plain(number: object) -> str:
    from decimal import Decimal

    return format(Decimal(str(number)).normalize(), "f")


def _rows_of(path: Path) -> dict[str, dict[str, Any]]:
    return {f"{row['owner']}:{row['id']}": row for row in json.loads(path.read_text(encoding="utf-8"))["models"]}


def differences(before: Mapping[str, Mapping[str, Any]], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each model that is new, and for each fact of a model that is another one."""
    for row in rows:
        key = f"{row['owner']}:{row['id']}"
        if (old := before.get(key)) is None:
            yield f"new: {key}"
            continue
        for name in sorted((old.keys() | row.keys()) - {"date", "source"}):
            if old.get(name) != row.get(name):
                yield f"{key}: {name} was {json.dumps(old.get(name))}, is {json.dumps(row.get(name))}"


if __name__ == "__main__":
    sys.exit(main())
