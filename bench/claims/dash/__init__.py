"""Claims about the dashboard and signing in."""
