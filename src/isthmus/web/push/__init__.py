"""Notifications by Web Push: what they tell, who was told, and answers by their buttons."""
