"""Recommenders: what users may like, from ratings."""
