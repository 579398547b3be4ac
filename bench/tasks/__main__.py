"""``python -m bench.tasks -m MODEL [FOLDER]``: let a model solve tasks, and print what it took."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.tasks.running import AGENT_SECONDS, Outcome, Price, run_task
from bench.tasks.task import OWN_TASKS, TaskError, read_tasks

HEADER = f"{'task':32} {'solved':>6} {'turns':>5} {'input':>9} {'cached':>9} {'output':>8} {'cost':>8} {'seconds':>7}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tasks one after the other; return 0 if all were solved, 1 if not, 2 if the tasks cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m bench.tasks", description=__doc__)
    parser.add_argument("tasks", nargs="?", type=Path, default=OWN_TASKS, help="folder, .toml, or .jsonl of SWE-bench")
    parser.add_argument("-m", "--model", required=True, help="as in isthmus -m; keys come from the environment")
    parser.add_argument("--only", action="append", metavar="NAME", help="run this task only; repeatable")
    parser.add_argument("--clones", type=Path, metavar="DIR", help="clones for SWE-bench, named OWNER__NAME")
    parser.add_argument("--price", metavar="IN,CACHED,OUT", help="US dollars for a million tokens")
    parser.add_argument("--seconds", type=float, default=AGENT_SECONDS, help="maximum time for the agent on one task")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION", help="passed to isthmus; repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the outcomes to this file")
    options = parser.parse_args(arguments)
    try:
        price = Price(*map(float, options.price.split(","))) if options.price else None
    except (ValueError, TypeError):
        parser.error(f"--price: expected three numbers such as 3,0.3,15, received {options.price!r}")
    try:
        tasks = read_tasks(options.tasks, options.clones)
    except TaskError as error:
        print(error, file=sys.stderr)
        return 2
    chosen = [task for task in tasks if not options.only or task.name in options.only]
    print(HEADER, flush=True)
    outcomes: list[Outcome] = []
    for task in chosen:
        outcomes.append(run_task(task, options.model, options.option, options.seconds))
        print(row(outcomes[-1], price), flush=True)
    total = Outcome(
        f"{sum(one.is_solved for one in outcomes)} of {len(outcomes)} solved",
        all(one.is_solved for one in outcomes),
        sum(one.turns for one in outcomes),
        sum(one.input_tokens for one in outcomes),
        sum(one.cached_tokens for one in outcomes),
        sum(one.output_tokens for one in outcomes),
        sum(one.seconds for one in outcomes),
    )
    print(row(total, price))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(one) for one in outcomes], indent=2) + "\n", encoding="utf-8")
    return 0 if outcomes and total.is_solved else 1


def row(outcome: Outcome, price: Price | None) -> str:
    """Return the line of an outcome."""
    cost = f"${price.cost(outcome):.3f}" if price is not None else "-"
    solved = "yes" if outcome.is_solved else "no"
    line = (
        f"{outcome.task:32} {solved:>6} {outcome.turns:>5} {outcome.input_tokens:>9,} {outcome.cached_tokens:>9,}"
        f" {outcome.output_tokens:>8,} {cost:>8} {outcome.seconds:>7.1f}"
    )
    return f"{line}  {outcome.note}" if outcome.note else line


if __name__ == "__main__":
    sys.exit(main())
