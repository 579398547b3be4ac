"""Texts of ``/ide status``: the connected editor and its features, or what to do when there is none."""

from pathlib import Path

from isthmus.ide.clients.ide_client import IdeClient, IdeError
from isthmus.ide.discovery.connecting import Candidates
from isthmus.ide.editor import Capability

DISABLED = "Your editor is not used for this workspace: /ide disable switched it off. /ide enable uses it again."
MAXIMUM_REJECTED = 10
# Only the features that Isthmus uses: companions list every tool of their protocol, even those their editor lacks.
_WORDS = {
    Capability.DIFF: "reviews of edits",
    Capability.SELECTION: "open files and selection",
    Capability.DIAGNOSTICS: "diagnostics",
    Capability.OPEN: "opening files",
    Capability.DIRTY: "unsaved changes",
    Capability.SAVE: "saving",
}
_HOW_TO_START = (
    "Open the folder in an editor with an agent extension (VS Code with the Claude Code or the Gemini CLI companion "
    "extension, Neovim with claudecode.nvim), or run `isthmus companion` for Neovim, Emacs, Jupyter or any editor. "
    "Then /ide enable. `isthmus ide status` lists every editor that announces itself."
)


async def connected_status(client: IdeClient, workspace: Path) -> str:
    """Describe an editor that is, or was, connected."""
    if not client.connected:
        problem = client.problem or "unknown reason"
        return (
            f"{client.ide_name} is not connected ({problem}). Isthmus keeps trying to reconnect. Use /ide enable to "
            "look for another editor now, or /ide disable to continue without one."
        )
    try:
        folders = await client.workspace_folders()
    except IdeError:
        folders = ()
    offered = ", ".join(word for capability, word in _WORDS.items() if capability in client.offers)
    process = f", process {client.pid}" if client.pid else ""
    lines = [
        f"Connected to {client.ide_name} ({client.protocol} protocol{process}).",
        f"Folders: {', '.join(folders) or workspace}",
        f"It offers: {offered}",
    ]
    if not client.can_review:
        lines.append("It shows no diffs, so edits are reviewed here only. Diffs may be switched off in its settings.")
    context = client.context()
    files = (context.workspace_state.open_files if context and context.workspace_state else None) or ()
    active = context.active_file if context else None
    if files:
        selected = ", with selected text" if active and active.selected_text else ""
        lines.append(f"Open files: {len(files)}" + (f"; you are in {active.path}{selected}" if active else ""))
    return "\n".join(lines)


def not_found_status(candidates: Candidates, workspace: Path) -> str:
    """Explain why no editor is connected, and what to do."""
    if candidates:
        named = [ide.source for _, ide in candidates.by_preference()]
        return (
            f"An editor announces itself for {workspace}, but does not answer: {', '.join(named[:MAXIMUM_REJECTED])}. "
            "Restart its extension or companion, then /ide enable."
        )
    lines = [f"No editor with an agent extension has {workspace} open."]
    lines += [f"- {rejected.source}: {rejected.reason}" for rejected in candidates.rejected[:MAXIMUM_REJECTED]]
    if len(candidates.rejected) > MAXIMUM_REJECTED:
        lines.append(f"- and {len(candidates.rejected) - MAXIMUM_REJECTED} more")
    return "\n".join((*lines, _HOW_TO_START))
