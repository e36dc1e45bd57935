"""The routes of the HTTP API, one module for each resource. A route reads the request, calls a service and builds the
response.
"""
