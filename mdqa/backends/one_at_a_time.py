"""The lock under which models are loaded.

transformers exchanges functions of its own while it loads a model and puts them back afterwards. Two threads that load
at the same time leave them exchanged: models that are loaded later then lack tied weights.
"""

from __future__ import annotations

import threading

LOADING = threading.RLock()
"""Held by whoever loads a model of transformers or sentence-transformers in this process."""
