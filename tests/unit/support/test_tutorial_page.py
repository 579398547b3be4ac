import pytest

from support.tutorial_page import (
    AnswerLine,
    Change,
    ChangeFile,
    EndProgram,
    InTerminal,
    PageError,
    PressKeys,
    Quote,
    RunCommands,
    See,
    TypeText,
    prerequisites,
    read_page,
    section,
)

PAGE = """# Tutorial

You need what [the other](other.md#1-install-it) installs.

## 1. Start

```sh
cd ~/x
nvim a
```

In Neovim type `:terminal`, and press `i`. If it still works, press `q`. Press `1` in the second
terminal, then leave it with Ctrl-C and Ctrl-D.

```text
Bye.
```

Enter this prompt:

```
Add it.
```

## Where to go from here

Press what you like.
"""


def test_the_steps_come_in_the_order_of_the_page() -> None:
    assert read_page("p.md", PAGE) == [
        RunCommands("p.md:7", ["cd ~/x", "nvim a"]),
        TypeText("p.md:12", ":terminal"),
        PressKeys("p.md:12", "i"),
        InTerminal("p.md:12", 2),
        PressKeys("p.md:12", "1"),
        EndProgram("p.md:13", ["\x03", "\x04"]),
        See("p.md:15", ["Bye."]),
        TypeText("p.md:21", "Add it."),
    ]


def test_a_guide_changes_files_quotes_them_and_answers_programs() -> None:
    page = "Then answer `y`.\n```diff\n+++ a.py\n one\n-two\n+2\n@@\n+last\n```\n- So:\n\n  ```python\n  x = 1\n  ```\n"
    assert read_page("p.md", page) == [
        AnswerLine("p.md:1", "y"),
        ChangeFile("p.md:2", "a.py", [Change("one\ntwo\n", "one\n2\n"), Change("", "last\n")]),
        Quote("p.md:12", ["x = 1"]),
    ]


@pytest.mark.parametrize(
    ("page", "mistake"),
    [
        ("\nThen press the key of your choice.\n", "p.md:2: this instruction is not understood: press the key"),
        ("Stop it.\n", "p.md:1: this instruction is not understood: Stop it."),
        ("```\nAdd it.\n```\n", 'p.md:1: expected one line after "Enter this prompt:"'),
        ("Enter this prompt:\n\n```sh\nls\n```\n", "p.md:3: expected the prompt"),
        ("```yaml\na: b\n```\n", "p.md:1: expected a block of sh, text, diff or a quotation, not of yaml"),
    ],
)
def test_what_is_not_understood_is_a_mistake_of_the_page(page: str, mistake: str) -> None:
    with pytest.raises(PageError) as raised:
        read_page("p.md", page)
    assert str(raised.value).startswith(mistake)


def test_a_section_that_a_page_needs_keeps_its_lines() -> None:
    assert prerequisites(PAGE) == [("other.md", "1-install-it")]
    other = "# Other\n\n## 1. Install it\n\n```sh\npip install it\n```\n\n## 2. Use it\n\n```sh\nit\n```\n"
    assert read_page("other.md", section(other, "1-install-it")) == [RunCommands("other.md:5", ["pip install it"])]
    with pytest.raises(PageError):
        section(other, "3-more")
