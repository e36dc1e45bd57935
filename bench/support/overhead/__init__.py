"""What door-9 measures, part by part."""
