"""Program of the benchmark ``trees``: completes, globs and searches in a tree, with ripgrep beside it, and prints JSON.

Its arguments are a folder and a number of rounds.
"""

import asyncio
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from isthmus.agent.references.completion import complete_path
from isthmus.tools.port.base import ToolContext
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.search.glob import Glob
from isthmus.tools.search.grep_search import GrepSearch
from support.tool_calls import success_of

LINES = ("@", "@pkg077/", "@pkg077/mod05", "@file_05", "@mod07/file_1", "@p7m7f7", "@zzz")
PATTERNS = {"grep": "needle_7_", "grep, no match": "there_is_no_such_text"}


async def main() -> None:
    """Measure, and print the figures: seconds, MiB and numbers."""
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    workspace = Workspace(folder)
    figures: dict[str, float] = {}
    begin = time.perf_counter()
    found = complete_path("@pkg077/", workspace)
    figures["completion before the listing"] = time.perf_counter() - begin
    figures["found before the listing"] = len(found)
    kept = workspace.kept_index(workspace.root)
    await asyncio.wrap_future(kept.refreshed())
    figures["listing"] = time.perf_counter() - begin
    figures["files"] = kept.index.count
    begin = time.perf_counter()
    await asyncio.wrap_future(kept.refreshed())
    figures["listing again"] = time.perf_counter() - begin
    times: list[float] = []
    for line in LINES:
        begin = time.perf_counter()
        complete_path(line, workspace)
        times.append(time.perf_counter() - begin)
    figures["first completion"], figures["slowest completion"] = times[0], max(times)
    context = ToolContext(workspace, "call-1", folder.parent, {})
    begin = time.perf_counter()
    await success_of(Glob(), context, pattern="**/mod07*/file_09?.py")
    figures["glob"] = time.perf_counter() - begin
    program = shutil.which("rg")
    if program is None:
        raise RuntimeError("ripgrep is not in PATH")
    for name, pattern in PATTERNS.items():
        ours: list[float] = []
        plain: list[float] = []
        for _ in range(rounds):
            begin = time.perf_counter()
            command = [program, "-n", pattern, "./"]
            await asyncio.to_thread(subprocess.run, command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
            plain.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            await success_of(GrepSearch(), context, pattern=pattern)
            ours.append(time.perf_counter() - begin)
        figures[name], figures[f"{name}, rg"] = median(ours), median(plain)
    figures["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main())
