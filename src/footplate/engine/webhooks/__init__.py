"""Sends webhooks: wakes the workflow of an endpoint, creates its deliveries from the feed, and sends them."""
