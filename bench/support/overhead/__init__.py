"""Measures the API's overhead: response times against a bare app, and the memory of idle streams."""
