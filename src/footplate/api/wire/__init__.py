"""The wire format as pydantic models: request bodies, query strings and responses."""
