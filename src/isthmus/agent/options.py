"""How a coding agent is set up: what holds for all its sessions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.agent.approval import Policy


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How a coding agent is set up.

    ``output_folder`` keeps tool outputs that are too long to show; ``environment`` is what commands get.
    """

    output_folder: Path
    environment: Mapping[str, str]
    policy: Policy = field(default_factory=Policy)
    max_model_turns: int = 100


OWN_SECRETS = frozenset(
    {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "GEMINI_API_KEY",
        "GEMINI_CLI_IDE_AUTH_TOKEN",
        "GOOGLE_API_KEY",
        "ISTHMUS_A2A_TOKEN",
        "OPENAI_API_KEY",
    }
)
"""What the agent itself needs, and no command that a model writes does."""


def environment_for_commands(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The environment without the agent's own keys and tokens; what else is there, a person's commands may need."""
    return {name: value for name, value in environment.items() if name not in OWN_SECRETS}
