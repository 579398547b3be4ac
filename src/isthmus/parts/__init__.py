"""Parts of an agent, and other things that it is made of: models, hooks, approvals, skills, and parts from packages."""
