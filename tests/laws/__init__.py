"""Laws that hold for every operation, each with its reasons."""
