"""The API server's client: credentials, typed requests, list and watch, events. The only code that talks to it."""
