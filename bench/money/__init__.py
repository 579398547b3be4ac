"""Prices of a session: our agent beside Claude Code, opencode, Codex and Gemini CLI, at an endpoint that bills caches.

docs/explanation/money-benchmark.md says how it bills, and what the figures mean. ``python -m bench.money`` runs it for
chosen clients, and prints each request.
"""

import sys
from collections.abc import Sequence

from bench.figures import Figure
from bench.money.script import FULL, QUICK
from bench.processes import ROOT

sys.path.append(str(ROOT / "tests"))  # the endpoint runs in this process, with the wires of the tests


def run(rounds: int | None) -> list[Figure]:
    """Run the whole session once with each client that is there, and return the figures."""
    return _figures(FULL)


def run_quick() -> list[Figure]:
    """Run a session of ten turns with each client that is there."""
    return _figures(QUICK)


def _figures(kinds: Sequence[str]) -> list[Figure]:
    from bench.money.clients import every_client
    from bench.money.report import figures, lines
    from bench.money.running import SessionBill, run_session

    sessions: list[SessionBill] = []
    for client in every_client():
        if reason := client.missing():
            print(f"  {client.name}: {reason}", flush=True)
            continue
        sessions.append(run_session(client, kinds))
    print("\n".join(lines(sessions)), flush=True)
    return figures(sessions)
