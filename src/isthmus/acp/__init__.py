"""The Agent Client Protocol (https://agentclientprotocol.com): its messages, our agent behind it, and other agents."""
