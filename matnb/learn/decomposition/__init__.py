"""Rows as fewer numbers: components, factors, topics."""
