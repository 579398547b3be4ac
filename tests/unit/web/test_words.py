"""The texts of the page are all in its table; frontend/tests/words.test.ts has what holds of the table."""

import re
from pathlib import Path

FRONTEND = Path(__file__).parents[3] / "frontend" / "src"


def test_no_text_of_the_page_is_outside_the_table() -> None:
    shown = re.compile(
        r'(?:aria-label|title|placeholder|alt)="([^"$]*[a-z][^"$]*)"|>\s*([A-Z][a-z]+ [a-z][^<$`{}=;]*)<'
    )
    for path in FRONTEND.rglob("*.ts"):
        if path.name == "words.ts":
            continue
        for found in shown.finditer(path.read_text("utf-8")):
            assert (found[1] or found[2]) in {"Isthmus"}, f"{path.name}: {found[0]}"
