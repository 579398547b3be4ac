"""Review page in the browser, for editors without a screen of their own."""
