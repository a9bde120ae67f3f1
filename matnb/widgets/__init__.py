"""What is looked at while it changes: events gathered, and thin ipywidgets over pictures."""
