"""The client side of ACP: hosts the agent of another author, and turns what it sends into AgentEvents.

It knows events and messages, not who serves them: :mod:`isthmus.acp.served.agent` connects it with the engine.
"""
