"""Output of ``isthmus`` itself, beside the conversation."""

import io

from isthmus.cli.run import WaitingNotice


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_headless_turn_says_once_at_a_terminal_for_which_servers_it_waits() -> None:
    terminal = Terminal()
    notice = WaitingNotice(terminal)
    notice(["slow", "hang\x1b[2J"], 1.5)
    notice(["slow", "hang\x1b[2J"], 3.0)
    notice(["slow"], 4.5)
    assert terminal.getvalue().splitlines() == [
        "isthmus: waiting up to 20 s for MCP servers to connect: slow, hang␛[2J",
        "isthmus: waiting up to 20 s for MCP servers to connect: slow",
    ]


def test_nothing_is_said_of_waiting_where_no_user_looks() -> None:
    script = io.StringIO()
    WaitingNotice(script)(["slow"], 1.5)
    assert script.getvalue() == ""
