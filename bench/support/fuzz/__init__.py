"""What `door-6` throws at the api: requests made from its own document, and bytes that nobody should send."""
