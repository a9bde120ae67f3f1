"""What is computed: expressions, interned, and what is told of each."""
