"""Kills API replicas during POSTs: a load balancer, SDK callers, the kills, and the check of each POST's effect."""
