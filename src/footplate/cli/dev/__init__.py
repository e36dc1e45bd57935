"""`footplate dev`: the whole product on one machine."""
