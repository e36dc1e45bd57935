"""Kills processes while sessions wait for approval, and checks that each call runs at most once."""
