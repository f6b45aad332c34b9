"""How sure the numbers are. Pure: numbers in, numbers out."""
