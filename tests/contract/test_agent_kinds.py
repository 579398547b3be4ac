"""The list of what the A2A contract suites keep to our own agents: it names tests that exist, each once."""

import re
from pathlib import Path

from support.own_agent_only import OWN_AGENT_ONLY, SAMPLE

FOLDER = Path(__file__).parent
NAMES = [name for names in OWN_AGENT_ONLY.values() for name in names]


def test_all_that_is_kept_to_our_own_agents_exists() -> None:
    for name in NAMES:
        file, _, function = name.partition("::")
        text = (FOLDER / f"{file}.py").read_text(encoding="utf-8")
        assert not function or re.search(rf"^(async )?def {function}\(", text, re.MULTILINE), name


def test_nothing_is_kept_twice_and_no_file_of_the_sample_is_kept() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert not {name for name in NAMES if name.partition("::")[0] in NAMES} - {
        name for name in NAMES if "::" not in name
    }
    assert not set(SAMPLE) & set(NAMES)
    assert all((FOLDER / f"{file}.py").exists() for file in SAMPLE)
