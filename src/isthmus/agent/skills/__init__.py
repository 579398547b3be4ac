"""Skills: instructions for one kind of work, which the model asks for when it needs them."""
