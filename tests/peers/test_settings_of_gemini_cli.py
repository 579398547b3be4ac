"""The page on settings against the table of settings in the installed Gemini CLI."""

import re
from collections.abc import Iterator
from pathlib import Path

from support.programs import node_package

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/settings.md"
KEY = re.compile(r"^(?P<indentation> *)(?P<name>\w+): (?P<opens>\{|pathArraySetting\()$")


def settings_schema() -> list[str]:
    bundle = node_package("@google/gemini-cli") / "bundle"
    for path in sorted(bundle.glob("chunk-*.js")):
        _, found, rest = path.read_text("utf-8").partition("\nvar SETTINGS_SCHEMA = {\n")
        if found:
            return rest.partition("\n};\n")[0].splitlines()
    raise AssertionError(f"no chunk of {bundle} has SETTINGS_SCHEMA")


def keys_of_gemini_cli() -> Iterator[str]:
    """Yield the full name of each setting: a key of the schema that has no ``properties``."""
    above: list[str] = []
    known: set[str] = set()
    for line in settings_schema():
        if (found := KEY.match(line)) is None:
            continue
        depth = len(found["indentation"]) // 2 - 1  # Settings and "properties" take turns, from a setting on.
        above[depth:] = [found["name"]]
        if depth % 2 == 0 and all(name == "properties" for name in above[1::2]):
            known.add(".".join(above[::2]))
    yield from (key for key in sorted(known) if not any(other.startswith(f"{key}.") for other in known))


def test_the_page_on_settings_says_of_each_key_of_gemini_cli_what_it_does() -> None:
    keys = list(keys_of_gemini_cli())
    assert {"mcpServers", "policyPaths", "general.vimMode", "ui.footer.items", "tools.core"} <= set(keys)
    named = {
        name
        for row in re.findall(r"(?m)^\| (`.*?) \|", PAGE.read_text("utf-8"))
        for name in re.findall(r"`(.*?)`", row)
    }
    groups = tuple(name.removesuffix("*") for name in named if name.endswith(".*"))
    assert [key for key in keys if key not in named and not key.startswith((*groups, "hooks."))] == []
    unused = PAGE.read_text("utf-8").partition("<!-- unused")[2].partition("<!-- /unused")[0]
    listed = [name for row in re.findall(r"(?m)^\| (`.*?) \|", unused) for name in re.findall(r"`(.*?)`", row)]
    assert [
        name for name in listed if not any(key == name or key.startswith(name.removesuffix("*")) for key in keys)
    ] == []
