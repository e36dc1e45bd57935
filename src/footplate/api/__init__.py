"""The HTTP API: routes, wire models and authentication. It reaches the rest of the server through the ports in
`domain.services`.
"""
