"""The errors that people meet. Each names the boundary that failed, the bad value and the way out.

Anything raised on purpose is an :class:`MdqaError`; its text is written for the person at the screen and is
safe to show. Every other exception is a fault of ours: ``run.run_one`` records it as a failed run.
"""

from __future__ import annotations


class MdqaError(Exception):
    """Base of all errors with a text for people."""


class InputError(MdqaError):
    """A question, document or file that cannot be used: ``place`` says where (file, line, field)."""

    def __init__(self, message: str, *, place: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place


class ConfigError(MdqaError):
    """A setting, method option or name that does not exist or is out of its limits."""


class ModelError(MdqaError):
    """A model that cannot be fetched, loaded or used for what was asked."""


class OutOfMemory(ModelError):
    """The device has too little memory for what was computed at once."""


class LoanError(ModelError):
    """A GPU that is borrowed for a while could not be had, or was taken back before the work was done."""


class CapabilityError(ModelError):
    """The chosen backend cannot do what the method needs (for example attention with an HTTP server)."""


class PromptTooLong(MdqaError):
    """A prompt does not fit into the model's window; both numbers are in the text."""

    def __init__(self, tokens: int, window: int, *, reserved: int = 0, role: str = "prompt") -> None:
        room = f" and {reserved:,} more are kept for the reply" if reserved else ""
        super().__init__(
            f"The {role} has {tokens:,} tokens{room}, but the model's window holds {window:,}. Give fewer or shorter "
            "documents, choose a model with a longer window, or choose a rule for what to cut (overflow)."
        )
        self.tokens, self.window = tokens, window


class ProfileError(MdqaError):
    """A calibration profile that is missing, damaged or made for another model."""


class OutputError(MdqaError):
    """A result could not be written: the disk is full, a device is gone. What was written before stays."""

    def __init__(self, place: str, problem: OSError) -> None:
        reason = problem.strerror or str(problem)
        super().__init__(f"{place}: cannot be written ({reason}); free some space or choose another place")


class StorageError(MdqaError):
    """The database cannot be opened, read or written."""


class MissingDependency(MdqaError):
    """An optional package is not installed."""

    def __init__(self, feature: str, package: str) -> None:
        super().__init__(f"{feature} needs the package {package!r}. Install it with: pip install {package}")


class Cancelled(Exception):
    """The person stopped the run. Not an error: the run ends with the status ``cancelled``."""
