import pytest
from isthmus.terminal.interactive.interactive.attention import Attention, CallsBy, notification


def written(calls_by: CallsBy = CallsBy.ALL, folder: str = "/srv/app", **variables: str) -> tuple[Attention, list[str]]:
    parts: list[str] = []
    return Attention(parts.append, variables, folder, calls_by), parts


def test_a_question_rings_and_changes_the_title_until_it_is_answered() -> None:
    attention, parts = written()
    attention.begin()
    attention.asked()
    attention.answered()
    attention.end()
    assert "".join(parts) == (
        "\x1b[22;2t\x1b]2;app - isthmus\x1b\\"
        "\x1b]2;? app - isthmus\x1b\\\x07"
        "\x1b]2;app - isthmus\x1b\\"
        "\x1b]2;\x1b\\\x1b[23;2t"
    )


def test_only_the_end_of_long_work_rings() -> None:
    attention, parts = written(CallsBy.BELL)
    attention.ended(9.9)
    assert parts == []
    attention.ended(10)
    assert "".join(parts) == "\x07"


def test_nothing_is_written_if_the_user_wants_none() -> None:
    attention, parts = written(CallsBy.NONE, TERM_PROGRAM="WezTerm")
    attention.begin()
    attention.asked()
    attention.answered()
    attention.ended(100)
    attention.end()
    assert "".join(parts) == ""


@pytest.mark.parametrize(
    ("variables", "sequence"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;done\x1b\\"),
        ({"TERM": "xterm-kitty"}, "\x1b]9;done\x1b\\"),
        ({"TERM": "foot"}, "\x1b]777;notify;Isthmus;done\x1b\\"),
        ({"TERM": "rxvt-unicode-256color"}, "\x1b]777;notify;Isthmus;done\x1b\\"),
        ({"TERM": "xterm-256color"}, ""),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/t"}, ""),
    ],
)
def test_a_notification_goes_to_terminals_that_are_known_for_it(variables: dict[str, str], sequence: str) -> None:
    assert notification("done", variables) == sequence


def test_the_name_of_a_folder_cannot_control_the_terminal() -> None:
    attention, parts = written(folder="/srv/a\x1b]0;x\x07;b", TERM="foot")
    attention.asked()
    assert "\x1b]0" not in "".join(parts)
    assert "".join(parts).count(";") == 3
