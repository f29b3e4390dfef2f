"""Who may ask what: authentication, authorization, and the webhooks to the API server that decide both."""
