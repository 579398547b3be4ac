"""Edits as models write them that know other agents: their names, their forms, and the slips of each. Data only.

What a form means decides what is expected: the text of the file afterwards, or None where nothing may be changed.
"""

import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Arguments: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MessyEdit:
    """A call: the agent whose form it has, the tool as it names it, the file before, and after (None: refused)."""

    agent: str
    form: str
    tool: str
    arguments: Arguments
    before: str
    after: str | None
    file: str = "a.py"


@dataclass(frozen=True, slots=True)
class Sample:
    """A file, and an edit of it: `old` occurs once."""

    file: str
    text: str
    old: str
    new: str

    @property
    def after(self) -> str:
        return self.text.replace(self.old, self.new)

    @property
    def first_line(self) -> int:
        """Number of the first line of the old text."""
        return self.text[: self.text.index(self.old)].count("\n") + 1


PYTHON = Sample(
    "a.py",
    "import os\n\n\ndef area(width, height):\n    # The café's area.\n    if width < 0:\n        return None\n"
    '    return width * height\n\n\ndef name():\n    return "area"\n',
    "    if width < 0:\n        return None\n    return width * height\n",
    '    if width < 0 or height < 0:\n        raise ValueError("negative")\n    return width * height\n',
)
GO = Sample(
    "a.go",
    'package main\n\nfunc main() {\n\tfor i := 0; i < 3; i++ {\n\t\tprintln(i, "x & y")\n\t}\n\tdone()\n}\n',
    '\t\tprintln(i, "x & y")\n\t}\n',
    '\t\tprintln(i, "x & z")\n\t\tflush()\n\t}\n',
)
YAML = Sample(
    "a.yaml",
    'services:\n  web:\n    image: "app:1"\n    ports:\n      - "80:80"\n\n  db:\n    image: "pg:16"\n',
    '    image: "app:1"\n    ports:\n      - "80:80"\n',
    '    image: "app:2"\n    ports:\n      - "80:80"\n      - "443:443"\n',
)
SAMPLES = (PYTHON, GO, YAML)


def numbered(sample: Sample, text: str, mark: Callable[[int, str], str]) -> str:
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(mark(sample.first_line + index, line) for index, line in enumerate(lines)) + "\n"


def cat(number: int, line: str) -> str:
    return f"{number:>6}\t{line}"


def arrow(number: int, line: str) -> str:
    return f"{number:>6}→{line}"


def bar(number: int, line: str) -> str:
    return f"{number:05}| {line}"


def codex_line(number: int, line: str) -> str:
    return f"L{number}: {line}"


def own(number: int, line: str) -> str:
    return f"{number}\t{line}"


def dedented(text: str) -> str:
    lines = text.split("\n")
    cut = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join(line[cut:] for line in lines)


def hunk(sample: Sample) -> list[str]:
    old, new = (text.removesuffix("\n").split("\n") for text in (sample.old, sample.new))
    return [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]


def patch(sample: Sample, *lines: str, path: str = "") -> str:
    head = f"*** Update File: {path or sample.file}"
    return "\n".join(["*** Begin Patch", head, *(lines or ("@@", *hunk(sample))), "*** End Patch"])


def claude(sample: Sample, old: str, new: str, **more: Any) -> Arguments:
    return {"file_path": sample.file, "old_string": old, "new_string": new, **more}


def both(change: Callable[[str], str]) -> Callable[[Sample], Arguments]:
    return lambda s: claude(s, change(s.old), change(s.new))


def prefixed(mark: Callable[[int, str], str]) -> Callable[[Sample], Arguments]:
    return lambda s: claude(s, numbered(s, s.old, mark), numbered(s, s.new, mark))


def block(s: Sample, begin: str, middle: str, end: str) -> str:
    return f"{begin}\n{s.old}{middle}\n{s.new}{end}\n"


REPLACE = "replace"
FORMS: tuple[tuple[str, str, str, Callable[[Sample], Arguments]], ...] = (
    # --- names and shapes of arguments
    ("Claude Code", "Edit", "Edit", lambda s: claude(s, s.old, s.new, replace_all=False)),
    (
        "Claude Code",
        "MultiEdit",
        "MultiEdit",
        lambda s: {"file_path": s.file, "edits": [{"old_string": s.old, "new_string": s.new}]},
    ),
    (
        "Claude Code",
        "edits as text",
        REPLACE,
        lambda s: {"file_path": s.file, "edits": json.dumps([{"old_string": s.old, "new_string": s.new}])},
    ),
    (
        "Claude Code",
        "edits as text, one object",
        REPLACE,
        lambda s: {"file_path": s.file, "edits": json.dumps({"old_string": s.old, "new_string": s.new})},
    ),
    (
        "Claude API",
        "str_replace",
        "str_replace_based_edit_tool",
        lambda s: {"command": "str_replace", "path": s.file, "old_str": s.old, "new_str": s.new},
    ),
    ("opencode", "edit", "edit", lambda s: {"filePath": s.file, "oldString": s.old, "newString": s.new}),
    (
        "opencode",
        "replaceAll",
        "edit",
        lambda s: {"filePath": s.file, "oldString": s.old, "newString": s.new, "replaceAll": True},
    ),
    ("Cursor", "search_replace", "search_replace", lambda s: claude(s, s.old, s.new)),
    ("Cursor", "oldText", REPLACE, lambda s: {"path": s.file, "oldText": s.old, "newText": s.new}),
    (
        "Cursor",
        "edits with old_text",
        REPLACE,
        lambda s: {"path": s.file, "edits": [{"old_text": s.old, "new_text": s.new}]},
    ),
    ("Gemini CLI", "instruction", REPLACE, lambda s: claude(s, s.old, s.new, instruction="x", expected_replacements=1)),
    (
        "Gemini CLI",
        "numbers and truth as text",
        REPLACE,
        lambda s: claude(s, s.old, s.new, expected_replacements="1", allow_multiple="false"),
    ),
    (
        "Gemini CLI",
        "an edit, and the same in edits",
        REPLACE,
        lambda s: claude(s, s.old, s.new, edits=[{"old_string": s.old, "new_string": s.new}]),
    ),
    (
        "Gemini CLI",
        "edits with one object",
        REPLACE,
        lambda s: {"file_path": s.file, "edits": {"old_string": s.old, "new_string": s.new}},
    ),
    (
        "aider",
        "a block",
        REPLACE,
        lambda s: {"path": s.file, "diff": block(s, "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE")},
    ),
    (
        "aider",
        "a block of Cline",
        "replace_in_file",
        lambda s: {"path": s.file, "diff": block(s, "------- SEARCH", "=======", "+++++++ REPLACE")},
    ),
    # --- the text of the reader
    ("Claude Code", "numbers of cat -n", REPLACE, prefixed(cat)),
    ("Claude Code", "numbers with an arrow", REPLACE, prefixed(arrow)),
    ("opencode", "numbers with a bar", "edit", prefixed(bar)),
    ("Codex", "numbers with L", REPLACE, prefixed(codex_line)),
    ("Isthmus", "our own numbers", REPLACE, prefixed(own)),
    ("Claude Code", "numbers in the old text", REPLACE, lambda s: claude(s, numbered(s, s.old, cat), s.new)),
    ("Claude Code", "numbers in the new text", REPLACE, lambda s: claude(s, s.old, numbered(s, s.new, cat))),
    # --- fences, escapes, characters, white space
    ("aider", "fences", REPLACE, both(lambda text: f"```python\n{text}```")),
    ("aider", "fences with a newline", REPLACE, both(lambda text: f"```\n{text}\n```\n")),
    ("aider", "a fence around the old text", REPLACE, lambda s: claude(s, f"```\n{s.old}```", s.new)),
    ("Gemini CLI", "escapes", REPLACE, both(lambda text: text.replace("\n", "\\n").replace('"', '\\"'))),
    (
        "Claude Code",
        "entities",
        REPLACE,
        both(lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")),
    ),
    ("opencode", "CRLF", REPLACE, both(lambda text: text.replace("\n", "\r\n"))),
    ("opencode", "spaces at line ends", REPLACE, lambda s: claude(s, s.old.replace("\n", "  \n"), s.new)),
    ("Cursor", "no indentation", REPLACE, both(dedented)),
    ("Cursor", "another newline at the end", REPLACE, lambda s: claude(s, s.old[:-1], s.new[:-1])),
    (
        "Gemini CLI",
        "spaces without breaks",
        REPLACE,
        lambda s: claude(s, s.old.replace("    ", " \u00a0\u00a0 "), s.new),
    ),
    ("Cursor", "a mark of byte order", REPLACE, lambda s: claude(s, "\ufeff" + s.old, s.new)),
    # --- patches
    ("Codex", "a patch", "apply_patch", lambda s: {"input": patch(s)}),
    ("Codex", "a patch in a fence", "apply_patch", lambda s: {"input": f"```diff\n{patch(s)}\n```"}),
    ("opencode", "patchText", "apply_patch", lambda s: {"patchText": patch(s)}),
    (
        "Codex",
        "a patch with numbers",
        "apply_patch",
        lambda s: {"input": patch(s, f"@@ -{s.first_line},3 +{s.first_line},3 @@", *hunk(s))},
    ),
    ("Codex", "no end", "apply_patch", lambda s: {"input": patch(s).removesuffix("\n*** End Patch")}),
    ("Codex", "a path from here", "apply_patch", lambda s: {"input": patch(s, path=f"./{s.file}")}),
    (
        "aider",
        "a diff",
        "apply_patch",
        lambda s: {
            "input": "\n".join([f"--- a/{s.file}", f"+++ b/{s.file}", f"@@ -{s.first_line},3 +1,3 @@", *hunk(s)])
        },
    ),
)


def _single() -> list[MessyEdit]:
    """Return the edits of one sample: what must be refused, and what only some texts can show."""
    s = PYTHON
    accents = unicodedata.normalize("NFD", "    # The café's area.\n")
    composed = unicodedata.normalize("NFC", accents)
    other_accents = s.text.replace(composed, accents)
    twice = s.text + s.text.replace("area(", "area2(")
    done = "a=10\n"
    crlf = s.text.replace("\n", "\r\n")
    numbers = "1\tone\n2\ttwo\n3\tthree\n"
    old = {"file_path": "a.py", "old_string": "a=1", "new_string": "a=10"}
    doubled = {"file_path": "a.py", "old_string": "import os\n", "new_string": "import os\nimport re\n"}
    imported = s.text.replace("import os\n", "import os\nimport re\n")
    markdown = "# Use\n\n```\nold\n```\n"

    def edit(agent: str, form: str, before: str, after: str | None, file: str = "a.py", **more: Any) -> MessyEdit:
        return MessyEdit(agent, form, REPLACE, {"file_path": file, **more}, before, after, file)

    def change(agent: str, form: str, arguments: Arguments, before: str, after: str | None) -> MessyEdit:
        return MessyEdit(agent, form, REPLACE, arguments, before, after)

    def patched(agent: str, form: str, before: str, after: str | None, *lines: str) -> MessyEdit:
        return MessyEdit(agent, form, "apply_patch", {"input": patch(s, *lines)}, before, after)

    return [
        edit(
            "Cursor",
            "NFD in the call",
            s.text,
            s.text.replace(composed, "    # Cafés.\n"),
            old_string=accents,
            new_string=unicodedata.normalize("NFD", "    # Cafés.\n"),
        ),
        edit(
            "Cursor",
            "NFD in the file",
            other_accents,
            other_accents.replace(accents, unicodedata.normalize("NFD", "    # Cafés.\n")),
            old_string=composed,
            new_string="    # Cafés.\n",
        ),
        edit(
            "Gemini CLI",
            "other quotation marks",
            s.text,
            s.text.replace('"area"', '"size"'),
            old_string="    return 'area'",
            new_string="    return 'size'",
        ),
        edit(
            "opencode",
            "LF for CRLF",
            crlf,
            crlf.replace("return None", "return 0"),
            old_string="0:\n        return None\n",
            new_string="0:\n        return 0\n",
        ),
        edit(
            "Claude Code",
            "numbers that are the text",
            numbers,
            numbers.replace("two", "zwei"),
            "a.tsv",
            old_string="2\ttwo",
            new_string="2\tzwei",
        ),
        edit(
            "Claude Code",
            "numbers in the new text that the file has",
            numbers,
            numbers + "4\tfour\n5\tfive\n",
            "a.tsv",
            old_string="3\tthree\n",
            new_string="3\tthree\n4\tfour\n5\tfive\n",
        ),
        edit(
            "aider",
            "a fence that is the text",
            markdown,
            markdown.replace("old", "new"),
            "a.md",
            old_string="```\nold\n```",
            new_string="```\nnew\n```",
        ),
        edit(
            "aider",
            "a fence that is new",
            "# Use\n\nold\n",
            "# Use\n\n```\nnew\n```\n",
            "a.md",
            old_string="old\n",
            new_string="```\nnew\n```\n",
        ),
        edit(
            "Claude Code",
            "entities that are the text",
            "<p>a &amp; b</p>\n",
            "<p>a &amp; c</p>\n",
            "a.html",
            old_string="a &amp; b",
            new_string="a &amp; c",
        ),
        edit(
            "Gemini CLI",
            "escapes that are the text",
            'x = "a\\nb"\n',
            'x = "a\\nc"\n',
            old_string='"a\\nb"',
            new_string='"a\\nc"',
        ),
        edit("Claude Code", "a new file", s.text, None, old_string="", new_string="x"),
        # --- made already
        change("opencode", "a number made longer twice", old, done, None),
        change("Codex", "a line added twice", doubled, imported, None),
        change(
            "Codex",
            "a line added twice, in another form",
            {**doubled, "old_string": "import  os\n", "new_string": "import  os\nimport re\n"},
            imported,
            None,
        ),
        edit(
            "Claude Code",
            "the same edit twice in one call",
            "a=1\n",
            done,
            edits=[{"old_string": "a=1", "new_string": "a=10"}] * 2,
        ),
        edit(
            "Claude Code",
            "all places made longer twice",
            "foobar foobar\n",
            None,
            old_string="foo",
            new_string="foobar",
            replace_all=True,
        ),
        edit(
            "Claude Code",
            "made already, with another text",
            s.text,
            None,
            old_string="    return width + height\n",
            new_string="    return width * height\n",
        ),
        edit(
            "Codex",
            "a longer name beside the short one",
            "a=10\na=1\n",
            "a=10\na=10\n",
            old_string="a=1\n",
            new_string="a=10\n",
        ),
        patched("Codex", "a hunk twice", imported, None, "@@", " import os", "+import re"),
        # --- ambiguous or elsewhere
        edit("Cursor", "two places", twice, None, old_string="        return None\n", new_string="        return 0\n"),
        edit(
            "Claude Code",
            "two places, with numbers",
            twice,
            None,
            old_string="     7\t        return None",
            new_string="     7\t        return 0",
        ),
        edit(
            "aider",
            "two places, in a fence",
            twice,
            None,
            old_string="```\n        return None\n```",
            new_string="```\n        return 0\n```",
        ),
        edit("Cursor", "nowhere", s.text, None, old_string="    return depth\n", new_string="    return 0\n"),
        edit("Cursor", "the same texts", s.text, None, old_string="import os", new_string="import os"),
        edit(
            "Cursor",
            "code left out",
            s.text,
            None,
            old_string=s.old,
            new_string="    # ... existing code ...\n    return width * height\n",
        ),
        edit("Claude Code", "broken JSON", s.text, None, edits='[{"old_string": "import os", '),
        edit("Claude Code", "JSON of another kind", s.text, None, edits="[1, 2]"),
        edit(
            "Gemini CLI",
            "two edits that differ",
            s.text,
            None,
            old_string="import os",
            new_string="import re",
            edits=[{"old_string": "name", "new_string": "title"}],
        ),
        edit(
            "opencode",
            "two old texts that differ",
            s.text,
            None,
            old_string="import os",
            oldString="name",
            new_string="x",
        ),
        edit(
            "aider",
            "a fence in the new text alone",
            s.text,
            None,
            old_string="import os\n",
            new_string="```python\nimport re\n```",
        ),
        edit(
            "Claude Code",
            "an old text of numbers alone",
            s.text,
            None,
            old_string="     1\t\n     2\t\n",
            new_string="x\n",
        ),
        change(
            "aider", "a block without an end", {"path": "a.py", "diff": "<<<<<<< SEARCH\nimport os\n"}, s.text, None
        ),
        change(
            "aider",
            "a block that is nowhere",
            {"path": "a.py", "diff": "<<<<<<< SEARCH\nimport sys\n=======\nimport re\n>>>>>>> REPLACE\n"},
            s.text,
            None,
        ),
        patched(
            "Codex",
            "a hunk with a place",
            twice,
            s.text + s.text.replace("area(", "area2(").replace("None", "0"),
            "@@ def area2(width, height):",
            "-        return None",
            "+        return 0",
        ),
        patched("Codex", "a hunk that is nowhere", s.text, None, "@@", "-    return depth", "+    return 0"),
        patched("Codex", "two places in a patch", twice, None, "@@", "-        return None", "+        return 0"),
        MessyEdit(
            "Codex",
            "a file that is there",
            "apply_patch",
            {"input": "*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch"},
            s.text,
            None,
        ),
    ]


def _of_forms() -> list[MessyEdit]:
    made: list[MessyEdit] = []
    for agent, form, tool, arguments in FORMS:
        for s in SAMPLES:
            is_refused = form in ("numbers in the new text", "no end")
            after = None if is_refused else s.after
            made.append(MessyEdit(agent, f"{form} ({s.file})", tool, arguments(s), s.text, after, s.file))
    return made


EDITS = (*_of_forms(), *_single())
