"""Two runs of one method on one question, one after the other: what is different in the later one, as plain data."""
