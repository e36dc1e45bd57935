"""Connects Footplate to Temporal: the workflows, the activities, the worker, and the client that wakes sessions."""
