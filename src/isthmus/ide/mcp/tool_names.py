"""The names of a companion's own tools, for those who must know them without speaking the protocols.

:data:`OPEN_DIFF` is a tool of both specs, with other arguments in each. All but ``close_tab`` are camelCase.
"""

OPEN_DIFF = "openDiff"
CLOSE_DIFF = "closeDiff"
"""Spec 1."""

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
"""These are spec 3's."""

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
"""What no custom tool may be called."""
