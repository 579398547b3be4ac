"""Known risks of a call, for the question about it. Pure.

Only what the policy knows of a call is stated: a command that is not understood has no risks but its place, and one
without a risk may be as bad. Answers and permissions never depend on it.
"""

from collections.abc import Iterator, Sequence

from isthmus.agent.approval.policy import Policy
from isthmus.agent.approval.shell_command import analyse
from isthmus.development_tool import ConfirmationDetails, ExecuteDetails
from isthmus.questions import CallRisk
from isthmus.record import record


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DELETING = _names("rm rmdir shred srm unlink")
_DELETING_GIT = _names("clean rm")
_NETWORK = _names(
    """
    aria2c curl dig ftp gh glab host lftp mosh mongosh mysql nc ncat netcat nslookup nmap ping psql rclone redis-cli
    rsync scp sftp socat ssh tailscale telnet traceroute w3m wget whois
    """
)
_NETWORK_PARTS: dict[str, frozenset[str]] = {
    "git": _names("clone fetch ls-remote pull push"),
    "docker": _names("login pull push"),
    "podman": _names("login pull push"),
    "npm": _names("add ci exec i install publish update view"),
    "pnpm": _names("add dlx i install publish update"),
    "yarn": _names("add dlx install publish upgrade"),
    "pip": _names("download index install search"),
    "pip3": _names("download index install search"),
    "uv": _names("add lock publish sync"),
    "cargo": _names("add fetch install publish search update"),
    "go": _names("get install"),
    "gem": _names("fetch install push update"),
    "apt": _names("install update upgrade"),
    "apt-get": _names("download install update upgrade"),
    "brew": _names("install update upgrade"),
}
"""Sub-commands that reach other machines."""
_NETWORK_TOOLS = frozenset({"web_fetch"})


@record
class RiskyFacts:
    """Facts about a call beside its proposal.

    ``is_removal``: its edit deletes the file. ``has_secrets``: it reads or changes a file that may hold secrets.
    ``starts_programs``: it changes a file with which other programs start programs by themselves. ``reaches_network``:
    its tool is of a server on another machine.
    """

    is_removal: bool = False
    has_secrets: bool = False
    starts_programs: bool = False
    reaches_network: bool = False


def risks_of(tool: str, proposal: ConfirmationDetails | None, policy: Policy, facts: RiskyFacts) -> tuple[str, ...]:
    """Return what is known to make a call risky, in the order of :class:`CallRisk`."""
    found = {
        CallRisk.DELETES: facts.is_removal,
        CallRisk.NETWORK: tool in _NETWORK_TOOLS or facts.reaches_network,
        CallRisk.NO_SANDBOX: False,
        CallRisk.SECRETS: facts.has_secrets,
        CallRisk.STARTS_PROGRAMS: facts.starts_programs,
    }
    if isinstance(proposal, ExecuteDetails):
        commands = list(_commands(proposal.command))
        is_tried = proposal.trial is not None and bool(proposal.trial.id)  # a yes runs nothing
        found[CallRisk.DELETES] = any(map(_deletes, commands))
        found[CallRisk.NETWORK] = policy.has_network and not is_tried and any(map(_reaches_network, commands))
        found[CallRisk.NO_SANDBOX] = not policy.is_confined and not is_tried
    return tuple(risk.value for risk, is_known in found.items() if is_known)


def _commands(line: str) -> Iterator[Sequence[str]]:
    """Yield the words of each simple command, its program without its folder; none if the line is not understood."""
    analysis = analyse(line)
    for simple in analysis.commands if analysis is not None else ():
        yield (simple.words[0].rpartition("/")[2], *simple.words[1:])


def _deletes(words: Sequence[str]) -> bool:
    name = words[0]
    return name in _DELETING or (name == "git" and _sub_command(words[1:]) in _DELETING_GIT)


def _reaches_network(words: Sequence[str]) -> bool:
    name = words[0]
    return name in _NETWORK or _sub_command(words[1:]) in _NETWORK_PARTS.get(name, frozenset())


def _sub_command(words: Sequence[str]) -> str:
    return next((word for word in words if not word.startswith("-")), "")
