"""A program that hosts the agent of an example; see hosted_program.py. Its third argument names the example."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "examples/agents"), str(Path(__file__).resolve().parents[1])]

from isthmus.a2a import serve  # noqa: E402
from support.hosted_asking_program import hosting_of  # noqa: E402 - the folders are known now

if __name__ == "__main__":
    example: Any = import_module(sys.argv[3])
    serve(example.agent, hosting_of(json.loads(sys.argv[1]), example.HOSTING))
