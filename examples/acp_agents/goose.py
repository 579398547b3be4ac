"""Goose, ``goose acp``. Its questions and edits were not tried."""

from isthmus.acp.host.known_agent import KnownAgent

AGENT = KnownAgent(
    id="goose",
    title="Goose",
    programs=("goose",),
    variables=("GOOSE_MODEL", "GOOSE_PROVIDER"),
    login="Run `goose configure` on the machine of the server.",
)
