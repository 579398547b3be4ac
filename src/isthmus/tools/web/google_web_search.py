"""google_web_search: search the web by the provider of the session's model, under Gemini CLI's name.

Needs no permission: the query goes to the provider that has the conversation anyway, and to nobody else. Pages are read
with web_fetch, which asks.
"""

from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.text.visible import with_ellipsis
from isthmus.tools.port.arguments import check_arguments
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure

QUERY_CHARACTERS = 1_000
"""Maximum length of a query in characters."""
MAXIMUM_CHARACTERS = 40_000
"""Maximum length of an answer for the model in characters."""
ABOUT_CHARACTERS = 120
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": QUERY_CHARACTERS,
            "description": "The question or the words to search for.",
        },
    },
    "required": ["query"],
}


class GoogleWebSearch:
    """Searches the web."""

    name = "google_web_search"
    description = (
        "Searches the web and returns an answer with its sources, numbered. For what the project does not tell and may "
        "have changed since you were trained: versions, documentation, error messages. Put nothing secret into a query."
    )
    parameters = PARAMETERS
    kind = ToolKind.READ
    needs_search = True

    def describe(self, arguments: Arguments) -> str:
        """Return the query."""
        return f"Search the web for: {with_ellipsis(self._query(arguments), ABOUT_CHARACTERS)}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the query; there is nothing to confirm."""
        self._query(arguments)
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the answer and the list of its sources."""
        query = self._query(arguments)
        if context.search is None:
            raise ToolFailure(f"{self.name}: the model of this session does not search the web", "web_search_error")
        answer = await context.search(query)
        listed = "\n".join(f"[{number}] {title} ({url})" for number, (title, url) in enumerate(answer.sources, 1))
        text = "\n\nSources:\n".join(filter(None, (answer.text[:MAXIMUM_CHARACTERS], listed)))
        # Strangers wrote the pages: what they say cannot end the block that marks it.
        marked = text.replace("</untrusted_context>", "&lt;/untrusted_context&gt;")
        for_model = f"<untrusted_context>\n{marked}\n</untrusted_context>"
        shown = ToolOutput(text=listed or "No sources were named.")
        return ToolSucceeded(shown, for_model, tokens=(answer.tokens,))

    def _query(self, arguments: Arguments) -> str:
        return check_arguments(self.name, PARAMETERS, arguments).string("query")
