"""Decisions of rules on tool calls, and which of several counts: the strictest."""

from enum import Enum


class RuleDecision(Enum):
    """Decision of a rule, by its name in policy files."""

    ALLOW = "allow"
    ASK = "ask_user"
    DENY = "deny"

    @property
    def leniency(self) -> int:
        """Rank of the decision: of several the one with the lowest counts."""
        return _STRICTEST_FIRST.index(self)

    @property
    def verb(self) -> str:
        """Verb for messages, after the rule's place: ``... forbids it``."""
        return _VERBS[self]


_STRICTEST_FIRST = (RuleDecision.DENY, RuleDecision.ASK, RuleDecision.ALLOW)
_VERBS = {RuleDecision.ALLOW: "allows", RuleDecision.ASK: "asks about", RuleDecision.DENY: "forbids"}
