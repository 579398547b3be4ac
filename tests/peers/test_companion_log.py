"""`isthmus ide log`: what goes over the wire between attached agents and a companion."""

import re
import subprocess
from pathlib import Path

from support.companion_clients import proposing_agent
from support.isthmus_program import ISTHMUS, companion_program, isthmus, read_line
from support.waiting import eventually

_BEGIN = r"\d\d:\d\d:\d\d\.\d{3} "


def test_the_log_is_followed_in_both_directions_without_tokens_until_the_end(workspace: Path) -> None:
    with companion_program(workspace) as companion:
        token = companion.discovered["authToken"]
        command = [*ISTHMUS, "ide", "log", "--follow"]
        with subprocess.Popen(
            command, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        ) as following:
            lines = [read_line(following)]

            def is_told() -> bool:
                lines.append(read_line(following))
                return "ide/diffRejected" in lines[-1]

            with proposing_agent(companion, workspace / "a.py") as agent:
                assert isthmus("ide", "diffs", "--wait", "30", folder=workspace).returncode == 0
                assert isthmus("ide", "reject", "a.py", folder=workspace).returncode == 0
                eventually(is_told, what="the rejection")
                agent.terminate()
            assert companion.end() == 0
            assert following.wait(30) == 1
            assert following.stderr is not None
            assert "does not answer" in following.stderr.read()
        assert lines[0] == "no agent has sent anything yet"
        logged = "\n".join(lines)
        assert re.search(_BEGIN + r'.+ <- .*"method": ?"tools/call".*"openDiff"', logged)
        assert re.search(_BEGIN + r'.+ -> .*"ide/diffRejected"', logged)
        assert token not in logged
