"""Proxies between a turn and the network: the model proxy, which adds credentials that the turn never sees, and the
allow-list proxy for other hosts.
"""
