"""Push notifications: targets that are stored with their tasks, and the delivery to them."""
