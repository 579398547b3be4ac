"""The companion as a program: its servers, and the state that a restart needs."""
