"""The review page for editors without a screen of their own."""
