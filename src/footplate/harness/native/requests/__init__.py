"""Builds model requests from the conversation, and reuses the encoded prefix of earlier ones."""
