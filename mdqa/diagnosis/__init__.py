"""Why an answer is wrong: one verdict per wrong answer, from the ledger alone; it knows no method by name."""
