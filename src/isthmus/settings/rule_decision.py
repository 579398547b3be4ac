"""Decisions of rules on tool calls."""

from enum import Enum


class RuleDecision(Enum):
    """Decision of a rule, by its name in policy files."""

    ALLOW = "allow"
    ASK = "ask_user"
    DENY = "deny"
