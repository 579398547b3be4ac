"""Names of states and roles in A2A 0.3 and 1.0, for server and client.

:class:`isthmus.events.TaskState` has the states that Isthmus uses, under their names in 0.3.
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
"""Name in A2A 1.0 for each state name of 0.3."""

V03_STATES: Mapping[str, str] = MappingProxyType({new: old for old, new in V1_STATES.items()})
"""Name in A2A 0.3 for each state name of 1.0."""

V1_ROLES: Mapping[str, str] = MappingProxyType({"user": "ROLE_USER", "agent": "ROLE_AGENT"})
"""Name in A2A 1.0 for each role of 0.3."""

V03_ROLES: Mapping[str, str] = MappingProxyType({new: old for old, new in V1_ROLES.items()})
"""Name in A2A 0.3 for each role of 1.0."""

FOREIGN_STATES: Mapping[str, TaskState] = MappingProxyType(
    {
        "unknown": TaskState.WORKING,
    }
)
"""TaskState for each state of A2A that Isthmus does not have; the original name is kept as the reason."""

CARD_PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Paths of the agent card: in A2A 0.3 and 1.0, and in 0.2."""
