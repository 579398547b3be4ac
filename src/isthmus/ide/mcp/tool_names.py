"""Names of the companion's own tools, for modules that do not import the protocols.

:data:`OPEN_DIFF` is a tool of both protocols, with different arguments. All names except ``close_tab`` are camelCase.
"""

OPEN_DIFF = "openDiff"
CLOSE_DIFF = "closeDiff"
"""Tool of the Gemini CLI companion protocol only."""

OPEN_FILE = "openFile"
GET_CURRENT_SELECTION = "getCurrentSelection"
GET_LATEST_SELECTION = "getLatestSelection"
GET_OPEN_EDITORS = "getOpenEditors"
GET_WORKSPACE_FOLDERS = "getWorkspaceFolders"
GET_DIAGNOSTICS = "getDiagnostics"
CHECK_DOCUMENT_DIRTY = "checkDocumentDirty"
SAVE_DOCUMENT = "saveDocument"
CLOSE_TAB = "close_tab"
CLOSE_ALL_DIFF_TABS = "closeAllDiffTabs"
EXECUTE_CODE = "executeCode"
"""Last of the tools of the Claude IDE protocol; the first is :data:`OPEN_FILE`."""

ANSWERED_BY = "isthmus/answeredBy"
"""Key of ``_meta`` in our agent's call that closes a view: the surface where its question was answered."""

COMPANION_TOOLS = frozenset(
    {
        OPEN_DIFF,
        CLOSE_DIFF,
        OPEN_FILE,
        GET_CURRENT_SELECTION,
        GET_LATEST_SELECTION,
        GET_OPEN_EDITORS,
        GET_WORKSPACE_FOLDERS,
        GET_DIAGNOSTICS,
        CHECK_DOCUMENT_DIRTY,
        SAVE_DOCUMENT,
        CLOSE_TAB,
        CLOSE_ALL_DIFF_TABS,
        EXECUTE_CODE,
    }
)
"""Reserved names, which custom tools cannot use."""
