"""The agent programs of which more is known than the protocol states, one file each."""

from isthmus.acp.host.agents import claude_agent_acp, codex_acp, gemini, opencode, qwen

AGENTS = (gemini.AGENT, qwen.AGENT, opencode.AGENT, claude_agent_acp.AGENT, codex_acp.AGENT)
