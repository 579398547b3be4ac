"""`isthmus ide log`: what goes over the wire between attached agents and a companion."""

import re
import subprocess
from pathlib import Path

from support.companion_clients import proposing_agent
from support.isthmus_program import ISTHMUS, CompanionProgram, companion_program, isthmus, read_line
from support.waiting import eventually


def _logged(workspace: Path) -> str:
    done = isthmus("ide", "log", folder=workspace)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _propose_and_reject(companion: CompanionProgram, workspace: Path) -> None:
    with proposing_agent(companion, workspace / "a.py") as agent:
        assert isthmus("ide", "diffs", "--wait", "30", folder=workspace).returncode == 0
        assert isthmus("ide", "reject", "a.py", folder=workspace).returncode == 0
        agent.terminate()


def test_the_log_has_both_directions_with_time_and_agent_and_no_token(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        assert _logged(workspace) == "no agent has sent anything yet\n"
        _propose_and_reject(companion, workspace)
        logged = _logged(workspace)
        assert re.search(r'^\d\d:\d\d:\d\d\.\d{3} .+ <- .*"method": ?"tools/call".*"openDiff"', logged, re.MULTILINE)
        assert re.search(r'^\d\d:\d\d:\d\d\.\d{3} .+ -> .*"ide/diffRejected"', logged, re.MULTILINE)
        assert companion.discovered["authToken"] not in logged


def test_the_log_is_followed_until_the_companion_ends(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        command = [*ISTHMUS, "ide", "log", "--follow"]
        with subprocess.Popen(
            command, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        ) as following:
            assert read_line(following) == "no agent has sent anything yet"
            _propose_and_reject(companion, workspace)
            eventually(lambda: "ide/diffRejected" in read_line(following), what="the rejection")
            assert companion.end() == 0
            assert following.wait(30) == 1
            assert following.stderr is not None
            assert "does not answer" in following.stderr.read()
