"""An agent client served to a client of the Agent Client Protocol, such as an editor.

It sees the AgentClient port and events, never the agent behind them: the same front serves an agent in this process and
one behind a server.
"""
