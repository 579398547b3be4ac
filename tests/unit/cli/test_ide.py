import json

import pytest

from isthmus.cli.companion_user import CompanionUser

HOSTILE = "+\x1b]0;owned\x07\x1b[2Jtext\u202e\n-old\tline\n"


def test_what_agents_propose_does_not_control_the_users_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    CompanionUser(as_json=False, port=None, workspace=None).show({}, HOSTILE)
    assert capsys.readouterr().out == "+␛]0;owned␇␛[2Jtext\\u202e\n-old\tline\n\n"


def test_as_json_it_is_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    CompanionUser(as_json=True, port=None, workspace=None).show({"diff": HOSTILE}, "")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert json.loads(out) == {"diff": HOSTILE}
