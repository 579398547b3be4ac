"""The card of an agent as a client that speaks one version of A2A alone would read it (a2a-sdk 1)."""

from a2a.types import AgentCard


def of_version(card: AgentCard, version: str) -> AgentCard:
    """Return the card with the interfaces of a version alone."""
    kept = [each for each in card.supported_interfaces if each.protocol_version == version]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(kept)
    return card
