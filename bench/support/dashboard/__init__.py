"""An organisation with realistic content for the dashboard: people, rules, sessions, schedules, and what they used."""
