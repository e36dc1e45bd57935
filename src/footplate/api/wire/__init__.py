"""The wire format as pydantic models: what a request may say, and what an answer looks like."""
