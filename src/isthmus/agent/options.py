"""How a coding agent is set up: what holds for all its sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.agent.approval import Policy


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How a coding agent is set up. ``output_folder`` keeps tool outputs that are too long to show."""

    output_folder: Path
    environment: Mapping[str, str]
    policy: Policy = field(default_factory=Policy)
    max_model_turns: int = 100
