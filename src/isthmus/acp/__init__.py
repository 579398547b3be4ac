"""The Agent Client Protocol (https://agentclientprotocol.com): its messages, and our agent behind it."""
