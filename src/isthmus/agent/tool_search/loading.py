"""Choice of the tool schemas for a model: all, or those that fit its context and those that it searched for. Pure.

A session sends the tools of its first request until it is compacted, since providers cache them; what is searched for
meanwhile is called with `call_tool`. The session holds the loaded tools, as a fold of its events. A tool that is called
by name before it was loaded runs, and is loaded from then on. Not here: the search, see
:mod:`isthmus.agent.tool_search.search`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property

from isthmus.agent.session.size import tool_tokens
from isthmus.agent.tool_search.call_tool import CallOtherTool
from isthmus.agent.tool_search.index import SearchedTool
from isthmus.agent.tool_search.search import ToolSearch
from isthmus.record import record
from isthmus.text.units import show_count
from isthmus.text.visible import single_line
from isthmus.tools.port.base import Tool
from isthmus.tools.port.tool_set import CALL_TOOL, SEARCH_TOOL, ToolSet

MISSING_SERVERS = "missing servers"
SEARCHED_SERVERS = "searched servers"
"""Names of the sections of the system prompt that are made here."""
MAXIMUM_NAME = 100
"""Maximum length in characters of a server's name in the system prompt."""
LARGE_SHARE = 0.5
"""Fraction of the room for schemas above which a single schema is deferred before any server's tools."""
MAXIMUM_MISSING = 20
"""Maximum number of unavailable servers that the system prompt names."""
SEARCH_SHARE = 0.1
"""Share of a model's context that the schemas of servers' tools may fill before they are loaded on demand."""


class SearchMode(StrEnum):
    """Mode in which the schemas of servers' tools are loaded."""

    AUTO = "auto"
    """Load on demand if the schemas would fill more than their share of the model's context."""
    ALWAYS = "always"
    NEVER = "never"


@record
class SearchOptions:
    """Options of loading schemas on demand; ``share`` of the model's context window is above 0, at most 1."""

    mode: SearchMode = SearchMode.AUTO
    share: float = SEARCH_SHARE


class ToolLoading:
    """The tools of one segment, and the choice of those sent to the model.

    The parameter ``loaded`` of its methods is the session's ``loaded_tools``: None while all schemas are sent.
    """

    def __init__(self, tools: ToolSet, options: SearchOptions, *, takes_more: bool = False) -> None:
        """Take the tools; ``takes_more``: the session may call tools that come later than its first request."""
        self._own = tools
        self._takes_more = takes_more
        self._options = options
        self._of_servers = {name: server for server in tools.servers for name in server.tools if name in tools.tools}
        self._deferrable = {name: server for name, server in self._of_servers.items() if not server.is_always_loaded}
        self._deferred = frozenset(self._deferrable)

    def fit(self, window: int) -> None:
        """Defer as few schemas as necessary, for a model whose context has `window` tokens.

        Very large schemas are deferred first, then all tools of the largest server, of the next, and so on until the
        rest fills no more than its share.

        The result depends only on the tools and the window, so that the beginning of a prompt does not change.
        """
        if self._options.mode is not SearchMode.AUTO:
            return
        room = self._options.share * window
        if sum(self._tokens.values()) <= room:
            return  # A session that already loads on demand, since it once had more tools, stays as it is.
        deferred = {name for name in self._deferrable if self._tokens[name] > room * LARGE_SHARE}
        left = sum(count for name, count in self._tokens.items() if name not in deferred)
        sizes = Counter[str]()
        for name, server in self._deferrable.items():
            if name not in deferred:
                sizes[server.name] += self._tokens[name]
        for server, size in sizes.most_common():
            if left <= room:
                break
            deferred |= {name for name, origin in self._deferrable.items() if origin.name == server}
            left -= size
        self._deferred = frozenset(deferred)

    @cached_property
    def tools(self) -> ToolSet:
        """All callable tools, with the search tool if there is something to search, and the one that calls others."""
        calls = {CALL_TOOL: CallOtherTool(self._own.tools)}
        own = {name: tool for name, tool in self._own.tools.items() if name not in self._of_servers}
        if not self._deferrable or self._options.mode is SearchMode.NEVER:
            if not self._takes_more:
                return self._own
            return replace(self._own, tools={**own, **calls, **self._own.tools})
        search = ToolSearch(
            [
                SearchedTool(name, server.name, self._own.tools[name].description, self._own.tools[name].parameters)
                for name, server in self._deferrable.items()
            ]
        )
        return replace(self._own, tools={**own, search.name: search, **calls, **self._own.tools})

    def begins(self, loaded: Sequence[str] | None, window: int) -> bool:
        """Return whether the session starts to load tools on demand; `window` is the model's context in tokens."""
        if loaded is not None or SEARCH_TOOL not in self.tools.tools:
            return False
        if self._options.mode is SearchMode.ALWAYS:
            return True
        return sum(self._tokens.values()) > self._options.share * window

    @cached_property
    def _tokens(self) -> Mapping[str, int]:
        """Tokens of each tool of a server, counted once per segment, since that serialises hundreds of schemas."""
        tools = (self._own.tools[name] for name in self._of_servers)
        return {tool.name: tool_tokens(tool.name, tool.description, tool.parameters) for tool in tools}

    def sent(self, loaded: Sequence[str] | None) -> tuple[Tool, ...]:
        """Return the tools whose schemas are sent to the model; loaded ones come last, in the order of loading."""
        if loaded is None or SEARCH_TOOL not in self.tools.tools:
            return tuple(tool for name, tool in self.tools.tools.items() if name != SEARCH_TOOL)
        first = (name for name in self.tools.tools if name not in self._deferred)
        names = dict.fromkeys((*first, *(name for name in loaded if name in self._deferred)))
        return tuple(self.tools.tools[name] for name in names)

    def notes(self, loaded: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
        """Return the sections of the system prompt on missing servers, and on servers with tools to search for."""
        return ((MISSING_SERVERS, self._missing_note), (SEARCHED_SERVERS, self._search_note(loaded)))

    @cached_property
    def _missing_note(self) -> str:
        names = self._own.missing_servers
        if not names:
            return ""
        lines = "".join(f"- {_line(name)}\n" for name in names[:MAXIMUM_MISSING])
        more = f"- and {len(names) - MAXIMUM_MISSING} more\n" if len(names) > MAXIMUM_MISSING else ""
        return (
            "\nThese MCP servers are configured and not available now, so their tools are missing. Where the task "
            f"needs them, say so instead of working around it unsaid.\n{lines}{more}"
        )

    def _search_note(self, loaded: Sequence[str] | None) -> str:
        if loaded is None or SEARCH_TOOL not in self.tools.tools:
            return ""
        counts = {
            server.name: sum(name in self._deferred for name in server.tools)
            for server in self._own.servers
            if not server.is_always_loaded
        }
        lines = "".join(f"- {_line(name)}: {show_count(count, 'tool')}\n" for name, count in counts.items() if count)
        return (
            f"\nThese MCP servers have tools that you are not shown yet. Find them with `{SEARCH_TOOL}`, and call what "
            f"it finds with `{CALL_TOOL}`.\n{lines}"
        )


def _line(name: str) -> str:
    """Return a server's name, which a project may have chosen, as a single short line."""
    return single_line(name)[:MAXIMUM_NAME]
