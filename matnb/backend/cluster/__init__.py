"""The cluster: its processes, the connection to them, and requests to stop."""
