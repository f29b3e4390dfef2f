"""Authentication, authorization, and the webhooks to the API server that decide both."""
