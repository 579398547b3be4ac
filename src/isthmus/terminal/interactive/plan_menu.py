"""The menu below a plan: to carry it out, in which approval mode, or to go on planning."""

PLAN_LINES = (
    "1  Carry it out; edits and commands are asked about",
    "2  Carry it out; only commands are asked about",
    "3  Keep planning, as your next message says",
    "Or type what the plan should do differently.",
)
PLAN_CHOICES = 3
"""Number of those lines that are choices."""
PLAN_MODES = {"1": "default", "2": "auto_edit"}
"""Approval modes in which a plan is carried out, by the choice."""
CARRY_OUT = "I approve the plan. Carry it out."
