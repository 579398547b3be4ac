"""The IDE side: Editor port, context, reviews, discovery, and one wire per protocol. Usable without the agent."""
