"""Tables, code and links of an answer, in a real pseudo-terminal."""

import re
import signal
from pathlib import Path

import pytest

from support.front_terminal import FrontTerminal
from support.loaded_program import LoadedProgram
from support.session_terminal import PROMPT, Sessions


def test_an_answer_shows_its_table_code_and_link(front: FrontTerminal) -> None:
    with front("answer", environment={"TERM_PROGRAM": "WezTerm"}) as terminal:
        terminal.wait_for(PROMPT).press("sizes\r").wait_for(r"The sizes, see the docs \(https://example.org/sizes\):")
        # The table comes with its last row, aligned.
        assert "a.py" not in terminal.screen
        terminal.signal(signal.SIGUSR2).wait_for("Done").wait_for(PROMPT)
        assert "File │ 漢 字 \n─────┼─────\na.py │    1\nb.py │   20\n".replace(
            "漢 字 ", "漢字"
        ) in terminal.screen.replace("漢 字", "漢字")
        assert "```" not in terminal.screen
        assert terminal.color_of("def greet") == "magenta"
        assert terminal.color_of("'Hello'") == "green"
        assert b";https://example.org/sizes\x1b\\" in terminal.received


def test_a_terminal_that_is_not_known_for_links_gets_no_link_sequence(front: FrontTerminal) -> None:
    with front("answer") as terminal:
        terminal.wait_for(PROMPT).press("sizes\r").wait_for("https://example.org/sizes")
        assert b"\x1b]8;" not in terminal.received


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_code_and_links_are_plain_where_nothing_shows_styles(environment: dict[str, str], front: FrontTerminal) -> None:
    with front("answer", environment=environment) as terminal:
        terminal.wait_for(r"(?m)^\u203a").press("sizes\r").wait_for(r"see \[the docs\]\(https://example.org/sizes\)")
        terminal.signal(signal.SIGUSR2).wait_for("Done")
        assert "```python\ndef greet():\n    return 'Hello'\n```\nDone." in terminal.screen
        assert (b"\x1b[35m" in terminal.received) is False


THINKING = """
name: thinks
scenarios:
  - prompt: '.'
    replies:
      - steps:
          - thought: "**Weighing the options**\\n\\nOne is short.\\n\\n**Deciding**\\n\\nThe short one."
          - delay: 60
          - text: Done.
"""


def test_the_present_thought_is_seen_and_the_ones_before_stay(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    with Sessions(tmp_path, THINKING, workspace, loaded_isthmus).terminal() as terminal:
        terminal.wait_for(PROMPT).press("decide\r").wait_for(r"(?m)^\S Deciding.* · Esc cancels$")
        # The line above the live region is written by another task than the region itself.
        terminal.wait_for(r"(?m)^∙ Weighing the options$")
        assert len(re.findall(r"(?m)^∙ Weighing the options$", terminal.screen)) == 1
        terminal.press("\x1b").wait_for("cancelled").wait_for(PROMPT)
