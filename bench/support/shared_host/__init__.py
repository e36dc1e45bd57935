"""`footplate dev` on a host that others use: what another local user and a web page try, for `guard-6`."""
