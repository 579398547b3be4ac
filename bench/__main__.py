"""``python -m bench [NAME...] [--json FILE] [--rounds N] [--quick]``."""

import argparse
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.figures import Figure, table

BENCHMARKS = (
    "start",
    "headless",
    "a2a",
    "waiting",
    "ide",
    "mcp_host",
    "acp",
    "session",
    "edits",
    "trees",
    "web",
    "cluster",
    "money",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks; return 1 if a benchmark could not be run, otherwise 0, even if a budget is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks beside their peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="number of interleaved rounds; default: as each benchmark needs"
    )
    parser.add_argument(
        "--quick", action="store_true", help="the short form of benchmarks that have one: trees, cluster, money"
    )
    options = parser.parse_args(arguments)
    names: list[str] = options.names or list(BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"unknown benchmark {unknown[0]!r}; expected one of {', '.join(BENCHMARKS)}")
    figures: dict[str, list[Figure]] = {}
    broken: list[str] = []
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    for name in names:
        module = importlib.import_module(f"bench.{name}")
        summary = (module.__doc__ or "").partition("\n")[0]
        print(f"\n{name}: {summary}", flush=True)
        begin = time.monotonic()
        try:
            is_quick = options.quick and hasattr(module, "run_quick")
            found: list[Figure] = module.run_quick() if is_quick else module.run(options.rounds)
        except Exception as error:
            broken.append(name)
            print(f"  could not be run: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        figures[name] = found
        print("\n".join(table(found)))
        print(f"  ({time.monotonic() - begin:.0f} s, load average {os.getloadavg()[0]:.1f})", flush=True)
    every = [figure for found in figures.values() for figure in found if figure.met is not None]
    missed = [f"{figure.name}{figure.peer and f' ({figure.peer})'}" for figure in every if not figure.met]
    print(
        f"\n{len(every) - len(missed)} of {len(every)} budgets met." + (f" Missed: {'; '.join(missed)}." * bool(missed))
    )
    if options.json is not None:
        content = {name: [asdict(figure) for figure in found] for name, found in figures.items()}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
