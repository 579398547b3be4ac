"""IDE side: Editor port, context, reviews, discovery, and one wire per protocol. Works without the agent."""
