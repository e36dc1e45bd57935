"""Sends the changes of an organisation's sessions from the API to clients."""
