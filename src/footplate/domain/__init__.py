"""The pure core: values, events, decisions and ports. It does no I/O and imports no other package of Footplate."""
