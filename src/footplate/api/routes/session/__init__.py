"""Routes below `/v1/sessions`."""
