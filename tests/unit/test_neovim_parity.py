"""The page that compares Neovim's plugin with claudecode.nvim: each row names a test, and the test exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/neovim-parity.md"


def test_each_row_names_a_test_that_exists() -> None:
    rows = re.findall(r"(?m)^\| (.+?) \| (.+?) \| `(tests/[\w/]+\.py)::(test_\w+)` \|$", PAGE.read_text("utf-8"))
    all_rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    headings = 5
    assert len(rows) == len(all_rows) - headings
    assert len(rows) > 45
    for feature, _, path, name in rows:
        assert re.search(rf"(?m)^(?:async )?def {name}\(", (ROOT / path).read_text("utf-8")), (
            f"{feature}: {path}::{name}"
        )


def test_each_command_and_option_that_it_names_is_in_the_plugin() -> None:
    sources = [*(ROOT / "plugins/neovim").rglob("*.lua"), *(ROOT / "src/isthmus/editors/neovim").glob("*.lua")]
    code = "\n".join(path.read_text("utf-8") for path in sources)
    page = PAGE.read_text("utf-8")
    for command in set(re.findall(r":(Isthmus\w+)", page)):
        assert command in code, command
    for option in set(re.findall(r"`terminal\.(\w+)", page)):
        assert re.search(rf'setting\("{option}"\)|\.{option}\b', code), option
