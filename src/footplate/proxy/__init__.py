"""What a turn reaches through us alone: models, with credentials that it never sees, and the hosts that it may."""
