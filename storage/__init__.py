"""What is kept: runs with their traces, documents, attention arrays and profiles, in one SQLite file.

Start at :class:`storage.store.Store`. The package knows records and trace events, and neither methods nor screens.
"""
