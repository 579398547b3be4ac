"""Draws the pictures of README and docs, screens of the real programs as SVG; ``make pictures`` runs it.

Neovim with its plugin and ``isthmus`` run side by side, each in its own terminal, in an example project. The model is a
script, so that the pictures stay the same; everything else is as a user sees it.
"""

import asyncio
import io
import itertools
import os
import re
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from rich.color import ColorParseError
from rich.console import Console
from rich.style import Style
from rich.text import Text

from support.neovim import PLUGIN, vim_literal
from support.programs import require
from support.pty_program import PtyProgram, pty_program

if TYPE_CHECKING:
    import pyte.screens

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
ISTHMUS = [sys.executable, "-m", "isthmus"]
PROGRAM = """def greet(name):
    print("Hello,", name)


if __name__ == "__main__":
    greet("world")
"""
SCRIPT = """
name: demo-model
scenarios:
  - prompt: empty
    replies:
      - text: greet() prints a bare "Hello," then. I will give the name a default.
        call:
          name: replace
          arguments:
            file_path: hi.py
            old_string: '    print("Hello,", name)'
            new_string: '    print("Hello,", name or "you")'
      - text: Done. An empty name is greeted as "you".
"""
WORK = """
name: demo-model
scenarios:
  - prompt: 'slow'
    replies:
      - text: I look where the time goes, then I mend it.
        call:
          name: write_todos
          arguments:
            todos:
              - {description: Measure the three steps, status: completed}
              - {description: Read the file once, status: in_progress}
              - {description: Run the tests, status: pending}
      - text: |
          The file is read for **every** row:

          | step  | seconds | calls |
          |-------|--------:|------:|
          | read  |    4.12 | 1,000 |
          | parse |    0.31 | 1,000 |
          | write |    0.02 |     1 |

          So `load` moves out of the loop:

          ```python
          rows = load(path)
          for row in rows:
              total += row.price
          ```
        call:
          name: replace
          arguments:
            file_path: report.py
            old_string: |-
              for number in range(count(path)):
                  total += load(path)[number].price
            new_string: |-
              rows = load(path)
              for row in rows:
                  total += row.price
      - text: It takes half a second now.
"""
REPORT = """from store import count, load

path = "prices.csv"
total = 0
for number in range(count(path)):
    total += load(path)[number].price
print(total)
"""
ROWS = 22
PROMPT = r"(?m)^\u203a ?$"
# The widest picture is shown in about 830 pixels by GitHub: fewer columns are larger letters.
EDITOR_COLUMNS = 103
AGENT_COLUMNS = 62
TERMINAL_COLUMNS = 84


def cell_style(cell: "pyte.screens.Char") -> Style:
    """Return the style of a cell of a screen; a colour unknown to the picture becomes the default."""

    def color(name: str) -> str | None:
        if name == "default":
            return None
        return f"#{name}" if re.fullmatch(r"[0-9a-f]{6}", name) else name.replace("brown", "yellow")

    try:
        return Style(
            color=color(cell.fg), bgcolor=color(cell.bg), bold=cell.bold, italic=cell.italics,
            underline=cell.underscore, reverse=cell.reverse,
        )  # fmt: skip
    except ColorParseError:
        return Style(bold=cell.bold, reverse=cell.reverse)


def screen_lines(program: PtyProgram) -> list[Text]:
    """Return the lines of a program's screen, each as wide as the terminal."""
    lines: list[Text] = []
    for row in program.cells():
        line = Text()
        for style, cells in itertools.groupby(row, cell_style):
            line.append("".join(cell.data for cell in cells), style)
        lines.append(line)
    return lines


def write_picture(name: str, title: str, lines: Sequence[Text], columns: int) -> None:
    """Write lines as ``docs/pictures/NAME.svg``."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line, no_wrap=True, overflow="crop", crop=True)
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"{name}.svg"
    # Without fonts that a reader's browser would load from another server.
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title=title, unique_id=name), flags=re.DOTALL)
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    sys.stdout.write(f"{path}\n")


def side_by_side(editor: PtyProgram, agent: PtyProgram) -> tuple[list[Text], int]:
    """Return the lines of both screens with a bar between them, and their width."""
    bar = Text(" \u2502 ", Style(color="bright_black"))
    lines = [
        Text.assemble(left, bar, right) for left, right in zip(screen_lines(editor), screen_lines(agent), strict=True)
    ]
    return lines, EDITOR_COLUMNS + 3 + AGENT_COLUMNS


async def main() -> None:
    """Draw every picture."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as name:
        home = Path(name)
        folder = home / "project"
        folder.mkdir()
        (folder / "hi.py").write_text(PROGRAM, encoding="utf-8")
        (home / "script.yaml").write_text(SCRIPT, encoding="utf-8")
        environment = {
            "HOME": str(home), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TERM": "xterm-256color", "COLORTERM": "truecolor",
            "LANG": "C.UTF-8", "TMPDIR": str(home), "XDG_RUNTIME_DIR": str(home), "PS1": "$ ",
        }  # fmt: skip
        (folder / "report.py").write_text(REPORT, encoding="utf-8")
        (home / "work.yaml").write_text(WORK, encoding="utf-8")
        await asyncio.to_thread(_draw_terminal, home, folder, environment)
        await asyncio.to_thread(_draw_review, home, folder, environment)
        (folder / "hi.py").write_text(PROGRAM, encoding="utf-8")
        await asyncio.to_thread(_draw_kill, home, folder, environment)


def _draw_terminal(home: Path, folder: Path, environment: dict[str, str]) -> None:
    agent = [*ISTHMUS, "-m", f"scripted:{home / 'work.yaml'}", "--no-ide"]
    with pty_program(agent, folder=folder, environment=environment, columns=TERMINAL_COLUMNS, rows=46) as terminal:
        terminal.wait_for(PROMPT).press("Why is report.py so slow?\r").wait_for("1  Allow once")
        write_picture("terminal", "A plan, a table, code, and a question", screen_lines(terminal), TERMINAL_COLUMNS)


def _draw_review(home: Path, folder: Path, environment: dict[str, str]) -> None:
    settings = vim_literal({"program": ISTHMUS})
    neovim = [
        require("nvim"), "--clean", "-n", "--cmd", f"set runtimepath^={PLUGIN}", "--cmd", f"let g:isthmus = {settings}",
        "--cmd", "set number noruler laststatus=2 showtabline=0 termguicolors shortmess+=I diffopt+=foldcolumn:0",
        "--cmd", "let g:isthmus_review = {'pause': 0, 'reading': 0}", "hi.py",
    ]  # fmt: skip
    agent = [*ISTHMUS, "-m", f"scripted:{home / 'script.yaml'}"]
    with pty_program(neovim, folder=folder, environment=environment, columns=EDITOR_COLUMNS, rows=ROWS) as editor:
        editor.wait_for("def greet")
        _wait_for_companion(folder, environment)
        with pty_program(agent, folder=folder, environment=environment, columns=AGENT_COLUMNS, rows=ROWS) as terminal:
            terminal.wait_for(PROMPT).press("What if the name is empty?\r").wait_for("1  Allow once")
            editor.wait_for("or .you")
            write_picture("review", "Neovim and an agent: an edit waits for you", *side_by_side(editor, terminal))
            editor.press(":w\r")
            terminal.wait_for("greeted as")
            editor.wait_until_gone("isthmus:")
            write_picture("reviewed", "Accepted in Neovim: the agent goes on", *side_by_side(editor, terminal))
            terminal.press("/quit\r")
        editor.press(":qa!\r")


def _draw_kill(home: Path, folder: Path, environment: dict[str, str]) -> None:
    bash = ["bash", "--norc", "--noprofile"]
    with pty_program(bash, folder=folder, environment=environment, columns=AGENT_COLUMNS, rows=46) as shell:
        shell.press(f"alias isthmus='isthmus -m scripted:{home / 'script.yaml'}'; clear\r").wait_until_gone("alias")
        shell.press("isthmus\r").wait_for(PROMPT).press("What if the name is empty?\r").wait_for("1  Allow once")
        agent = psutil.Process(shell.process.pid).children()[0]
        agent.send_signal(signal.SIGKILL)
        shell.wait_for("Killed").press("isthmus --resume\r").wait_for("(?s)Killed.*1  Allow once").press("1")
        shell.wait_for("greeted as").wait_for(PROMPT)
        write_picture("killed", "A question survives kill -9", screen_lines(shell), AGENT_COLUMNS)


def _wait_for_companion(folder: Path, environment: dict[str, str]) -> None:
    with pty_program(["sh"], folder=folder, environment=environment, columns=100, rows=10) as shell:
        command = " ".join(ISTHMUS)
        shell.press(f"until {command} ide status >/dev/null 2>&1; do sleep 0.2; done; echo rea''dy\r").wait_for("ready")


if __name__ == "__main__":
    asyncio.run(main())
