"""Builds model requests from the conversation, and caches the encoded form of older messages."""
