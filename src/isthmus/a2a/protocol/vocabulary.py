"""The words in which A2A 0.3 and 1.0 differ, for both directions: states and roles, by their names on each wire.

Deliberately not here: shapes (the wire modules), and what a state means for a front (:class:`isthmus.events.TaskState`
has the ones that Isthmus uses by their names in 0.3).
"""

from collections.abc import Mapping
from types import MappingProxyType

from isthmus.events import TaskState

V1_STATES: Mapping[str, str] = MappingProxyType(
    {
        "unknown": "TASK_STATE_UNSPECIFIED",
        "submitted": "TASK_STATE_SUBMITTED",
        "working": "TASK_STATE_WORKING",
        "completed": "TASK_STATE_COMPLETED",
        "failed": "TASK_STATE_FAILED",
        "canceled": "TASK_STATE_CANCELED",
        "input-required": "TASK_STATE_INPUT_REQUIRED",
        "rejected": "TASK_STATE_REJECTED",
        "auth-required": "TASK_STATE_AUTH_REQUIRED",
    }
)
"""The state names of A2A 0.3, and what 1.0 calls them."""

V03_STATES: Mapping[str, str] = MappingProxyType({new: old for old, new in V1_STATES.items()})
"""The opposite."""

V1_ROLES: Mapping[str, str] = MappingProxyType({"user": "ROLE_USER", "agent": "ROLE_AGENT"})
"""The roles of A2A 0.3, and what 1.0 calls them."""

V03_ROLES: Mapping[str, str] = MappingProxyType({new: old for old, new in V1_ROLES.items()})
"""The opposite."""

FOREIGN_STATES: Mapping[str, TaskState] = MappingProxyType(
    {
        "unknown": TaskState.WORKING,
    }
)
"""What the states of A2A that Isthmus has no word for are to it; the original name is kept as the reason."""

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Paths of the agent card: of A2A 0.3 and 1.0, and of 0.2."""
