"""The page and the terminal agree on what is shown in text that a user approves."""

import json
import subprocess
from pathlib import Path

from isthmus.text.visible import visible, visible_prose

ROOT = Path(__file__).parents[2]
SCRIPT = """
import { exact, visible } from "./frontend/src/text/safe.ts";
const changed = (show, around) => {
  const found = [];
  for (let code = 0; code < 0x110000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const text = around(String.fromCodePoint(code));
    if (show(text) !== text) found.push(code);
  }
  return found;
};
const beside = (one) => `a${one}b`, alone = (one) => `1${one}1`;
console.log(JSON.stringify([changed(exact, beside), changed(exact, alone), changed(visible, alone)]));
"""


def changed(beside: str, *, in_prose: bool = False) -> list[int]:
    """Return the code points that the terminal shows otherwise than they are."""
    show = visible_prose if in_prose else visible
    before, after = beside
    texts = {code: f"{before}{chr(code)}{after}" for code in range(0x110000) if not 0xD800 <= code < 0xE000}
    return [code for code, text in texts.items() if show(text) != text]


def test_the_page_shows_the_same_characters_in_text_to_approve_as_the_terminal() -> None:
    node = ROOT / ".venv/bin/node"
    command = [str(node), "--input-type=module", "--eval", SCRIPT]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    beside, alone, in_prose = json.loads(ran.stdout)
    assert beside == changed("ab")
    assert alone == changed("11")
    assert {0x3BF, 0x430, 0xFF52} <= set(beside) - set(alone)
    # Joiners, selectors and blanks that scripts and emoji need stay in prose.
    assert set(in_prose) - set(changed("11", in_prose=True)) <= {0x200C, 0x200D, 0x2800}
