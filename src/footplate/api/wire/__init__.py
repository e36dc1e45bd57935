"""Pydantic models of the API's wire format: request bodies, query strings and responses."""
