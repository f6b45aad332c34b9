"""Started by the Python that has vLLM: ends with the program that started it, then becomes vLLM's server.

Standard library only, since that Python need not have mdqa. Not part of the package's interface.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""Linux: the signal that a process gets when the thread that started it ends, however that ends (prctl(2))."""


def main() -> None:
    """Tie this process to its parent, then run ``vllm.entrypoints.openai.api_server`` with the same arguments."""
    parent = int(os.environ.pop("MDQA_PARENT"))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before the tie held
            sys.exit(1)
    os.execv(sys.executable, [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *sys.argv[1:]])


if __name__ == "__main__":
    main()
