"""Cost of printing the version and the help.

The peers are an interpreter that does nothing, and the real Gemini CLI.
"""

import sys
from statistics import median

from bench.figures import Figure, at_most, beside
from bench.gemini import GeminiCli
from bench.processes import clean_home, measure, program

ROUNDS = 5
PEER_ROUNDS = 3


def run(rounds: int | None) -> list[Figure]:
    """Run interleaved rounds and return medians of CPU."""
    ours = program("isthmus")
    with clean_home() as environment:
        gemini = GeminiCli(environment)
        cases = {
            "nothing": [sys.executable, "-c", "pass"],
            "version": [ours, "--version"],
            "help": [ours, "--help"],
        }
        found: dict[str, list[float]] = {name: [] for name in cases}
        peers: list[float] = []
        memory = 0.0
        for number in range(rounds or ROUNDS):
            for name, command in cases.items():
                usage = measure(command, environment)
                found[name].append(usage.cpu)
                memory = max(memory, usage.memory)
            if number < (rounds or PEER_ROUNDS):
                peers.append(measure(gemini.command("--version"), gemini.environment).cpu)
    cpu = {name: median(values) for name, values in found.items()}
    return [
        at_most("--version, CPU", cpu["version"], "s", 0.1),
        at_most("--help, CPU", cpu["help"], "s", 0.1),
        beside("--version, CPU", cpu["version"], "s", "python -c pass", cpu["nothing"]),
        beside("--version, CPU", cpu["version"], "s", "gemini --version", median(peers)),
        beside("--help, CPU", cpu["help"], "s", "gemini --version", median(peers)),
        Figure("--help, memory", memory, "MiB"),
    ]
