"""`footplate dev`: runs all services of Footplate on one machine."""
