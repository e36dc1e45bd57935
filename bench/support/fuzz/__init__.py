"""Parts of `door-6`: requests generated from the OpenAPI document, and malformed bytes."""
