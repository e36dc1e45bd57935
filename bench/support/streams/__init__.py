"""The parts of core-4: cut clients, a publish that never happens, clients that never read, clients that join late."""
