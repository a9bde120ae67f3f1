"""How it will run: expressions to plan, place and explanation."""
