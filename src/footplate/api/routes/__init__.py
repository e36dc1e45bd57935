"""One file for each noun: read the request, ask a port, shape the answer."""
