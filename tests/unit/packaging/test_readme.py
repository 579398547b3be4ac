"""The README in packages: its links and pictures are addresses, since an index has no files of the repository."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
README = runpy.run_path(str(ROOT / "packaging" / "readme.py"))
URL = "https://example.org/o/isthmus"
REPOSITORY: Any = README["Repository"](URL, "main")


def addressed(text: str) -> str:
    return README["with_addresses"](text, REPOSITORY)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[a](docs/a.md)", f"[a]({URL}/blob/main/docs/a.md)"),
        ("[a](./docs/a.md#part)", f"[a]({URL}/blob/main/docs/a.md#part)"),
        ("![a picture](docs/a.svg)", f"![a picture]({URL}/raw/main/docs/a.svg)"),
        ("[a](https://a.org/b) and [c](#c) and [d](mailto:a@b.org)", None),
        ("```sh\nx [a](docs/a.md)\n```\n", None),
        ("a [b] (c) `[d]`", None),
    ],
)
def test_a_path_becomes_an_address_and_nothing_else_changes(text: str, wanted: str | None) -> None:
    assert addressed(text) == (text if wanted is None else wanted)


def test_each_link_of_the_readme_leads_to_a_file_of_the_repository() -> None:
    text = addressed((ROOT / "README.md").read_text("utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    own = [target for target in targets if target.startswith(URL)]
    assert len(own) > 20
    for target in own:
        path = re.sub(rf"^{URL}/(blob|raw)/main/", "", target).partition("#")[0]
        assert (ROOT / path).exists(), target
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
