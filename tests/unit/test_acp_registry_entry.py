"""Our entry for the public ACP registry: what the registry's own checks demand and needs no network."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import isthmus

FOLDER = Path(__file__).resolve().parents[2] / "packaging" / "acp-registry"


def entry() -> Any:
    return json.loads((FOLDER / "isthmus" / "agent.json").read_text(encoding="utf-8"))


def test_the_entry_fits_the_schema_of_the_registry() -> None:
    from jsonschema import Draft7Validator  # takes a second where Jupyter is installed

    schema = json.loads((FOLDER / "agent.schema.json").read_text(encoding="utf-8"))
    validator: Any = Draft7Validator(schema)

    assert [error.message for error in validator.iter_errors(entry())] == []
    assert not validator.is_valid({**entry(), "version": "new"})


def test_the_entry_has_the_id_of_its_folder_and_starts_our_command() -> None:
    assert entry()["id"] == "isthmus"
    assert entry()["distribution"] == {"uvx": {"package": f"isthmus@{isthmus.__version__}", "args": ["acp"]}}


def test_the_version_of_the_entry_is_that_of_the_package_in_three_numbers() -> None:
    assert entry()["version"] == isthmus.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", entry()["version"])


def test_the_icon_is_square_and_takes_the_colour_of_the_client() -> None:
    icon = ElementTree.fromstring((FOLDER / "isthmus" / "icon.svg").read_text(encoding="utf-8"))  # noqa: S314  our own

    assert (icon.get("width"), icon.get("height"), icon.get("viewBox")) == ("16", "16", "0 0 16 16")
    colours = [element.get(name) for element in icon.iter() for name in ("fill", "stroke") if element.get(name)]
    assert colours == ["currentColor"]
    assert [element.attrib for element in icon.iter() if "style" in element.attrib] == []
