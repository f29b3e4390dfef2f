"""The page in a real Chromium, as a reader uses it."""
