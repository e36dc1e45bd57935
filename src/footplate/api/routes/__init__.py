"""One module for each resource. A route reads the request, calls a port and builds the response."""
