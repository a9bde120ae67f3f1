"""What is computed: expressions, interned, and what is known of each."""
