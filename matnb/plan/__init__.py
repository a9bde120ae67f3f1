"""How it will run: expressions to a plan, what that takes, and its explanation."""
