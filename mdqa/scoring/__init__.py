"""Scoring of answers and evidence: pure functions on records, never rounded."""
