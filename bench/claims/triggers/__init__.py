"""Claims about webhooks and other triggers."""
