"""Settings of the real OpenCode (npm, the locked version) with a scripted model of OpenAI's wire."""

import json
from pathlib import Path


def configured(model_url: str, folder: Path, *, asks: bool = True) -> Path:
    """Write OpenCode's settings: a model at a URL, and questions before edits and commands if it ``asks``."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model_url, "apiKey": "none"},
        "models": {"scripted": {"name": "scripted"}},
    }
    settings = {
        "provider": {"test": provider},
        "model": "test/scripted",
        "small_model": "test/scripted",
        **({"permission": {"edit": "ask", "bash": "ask"}} if asks else {}),
        "autoupdate": False,
        "share": "disabled",
    }
    path = folder / "opencode.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path
