"""The parts of A2A that all protocol versions, server and client share, and the development-tool extension."""
