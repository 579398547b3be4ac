"""Two servers that share a database on one machine, as docs/how-to/serving.md says, with what pip installs."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.ports import free_port
from support.postgres import postgres

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "serving.md"
SECTION = "### Try two servers on one machine"


@pytest.fixture
def blocks() -> list[str]:
    """Return the commands of the section, with free ports."""
    text = PAGE.read_text(encoding="utf-8")
    _, heading, after = text.partition(f"\n{SECTION}\n")
    assert heading
    section = re.split(r"^##+ ", after, maxsplit=1, flags=re.MULTILINE)[0]
    for port in ("8081", "8082"):
        section = section.replace(port, str(free_port()))
    return re.findall(r"^```sh\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@contextmanager
def served(command: str, folder: Path, environment: dict[str, str]) -> Generator[subprocess.Popen[str]]:
    """Run a server until the end of the block, once it is ready."""
    with subprocess.Popen(
        ["sh", "-c", f"exec env {command}"], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert "A2A server ready at " in process.stdout.readline()
            yield process
        finally:
            process.send_signal(signal.SIGINT)


@pytest.mark.timeout(120)
def test_a_session_goes_on_at_the_other_server_of_the_page(
    tmp_path: Path, blocks: list[str], environment: dict[str, str]
) -> None:
    database, first, second, clients = blocks
    script = database.partition('python -c "')[2].rpartition('"')[0]
    compile(script, "the page", "exec")  # it may make a user of the system, so another database is used here
    assert "'journal-url'" in script
    begin, go_on = clients.splitlines()
    with postgres() as server:
        (tmp_path / "journal-url").write_text(server.database(), "utf-8")
        with served(second, tmp_path, environment):
            with served(first, tmp_path, environment):
                begun = subprocess.run(["sh", "-c", begin], cwd=tmp_path, env=environment, check=False, timeout=60)
                assert begun.returncode == 0
            gone_on = subprocess.run(
                ["sh", "-c", go_on],
                cwd=tmp_path,
                env=environment,
                check=False,
                timeout=60,
                capture_output=True,
                text=True,
            )
    assert gone_on.returncode == 0, gone_on.stderr
    assert gone_on.stdout.strip()
