"""Push notifications: configs kept with their tasks, and the news sent to them."""
