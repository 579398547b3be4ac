"""Questions in notifications: what they tell, who was told, and answers by their buttons."""
