"""Tables: named, typed columns beside each other, on the way to matrices and back."""
