"""How an installation is updated, by what its installer has left behind."""

import json
from dataclasses import replace

import pytest

from isthmus import __version__
from isthmus.cli.main import run
from isthmus.cli.update import Installation, installation, way_of

PLAIN = Installation("/home/me/env", "/home/me/env/bin/python", frozenset({"bin", "lib", "pyvenv.cfg"}), "pip")
WHEEL = "file:///tmp/isthmus-0.2.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("found", "by", "command"),
    [
        (PLAIN, "by pip in /home/me/env", "/home/me/env/bin/python -m pip install --upgrade isthmus"),
        (
            replace(PLAIN, installer=""),
            "by pip in /home/me/env",
            "/home/me/env/bin/python -m pip install --upgrade isthmus",
        ),
        (replace(PLAIN, source=WHEEL), "by pip in /home/me/env", "/home/me/env/bin/python -m pip install FILE.whl"),
        (
            replace(PLAIN, installer="uv"),
            "by uv in /home/me/env",
            "uv pip install --python /home/me/env/bin/python --upgrade isthmus",
        ),
        (
            replace(PLAIN, names=frozenset({"uv-receipt.toml"})),
            "by uv as a tool in /home/me/env",
            "uv tool upgrade isthmus",
        ),
        (
            replace(PLAIN, names=frozenset({"uv-receipt.toml"}), source=WHEEL),
            "by uv as a tool in /home/me/env",
            "uv tool install --force FILE.whl",
        ),
        (replace(PLAIN, names=frozenset({"pipx_metadata.json"})), "by pipx in /home/me/env", "pipx upgrade isthmus"),
        (
            replace(PLAIN, names=frozenset({"pipx_metadata.json"}), source=WHEEL),
            "by pipx in /home/me/env",
            "pipx install --force FILE.whl",
        ),
        (
            replace(PLAIN, prefix="/home/me/.cache/uv/archive-v0/U28zf1qj6gDqsszp", installer="uv"),
            "by uvx for this run",
            "uvx isthmus@latest",
        ),
        (
            replace(PLAIN, source="file:///home/me/my%20code", is_editable=True),
            "from the sources in /home/me/my code",
            "git -C '/home/me/my code' pull\n/home/me/env/bin/python -m pip install --editable '/home/me/my code'",
        ),
    ],
)
def test_the_command_is_that_of_the_program_that_installed_it(found: Installation, by: str, command: str) -> None:
    way = way_of(found)
    assert (way.by, "\n".join(way.commands)) == (by, command)


def test_this_installation_is_said_with_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["update"]) == 0
    said = capsys.readouterr().out
    commands = way_of(installation()).commands
    assert said.startswith(f"Isthmus {__version__} was installed ")
    assert "".join(f"\n  {command}" for command in commands) in said
    assert run(["update", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["commands"] == list(commands)
