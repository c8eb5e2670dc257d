"""What can become of a call besides its value."""

from __future__ import annotations


class Error(Exception):
    """Everything that semel raises. What it is made of is in ``args``, so that it survives a pickle or a result backend."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ConfigError(Error):
    """A setting makes no sense; it is found when a function is decorated or a worker starts."""


class LeftOpen(ConfigError):
    """The function says ``completes="handler"`` and returned before the transaction ended in which it completed."""


class Again(Error):
    """Nothing was run; the same call may be made again after ``retry_after`` seconds."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message, retry_after)
        self.retry_after = retry_after


class Busy(Again):
    """The same work is running elsewhere."""


class NotYet(Again):
    """It failed earlier, and its next run is not due yet."""


class Full(Again):
    """Too much work is in hand."""


class StoreUnavailable(Again):
    """The store could not be asked before the run."""


class Unread(Again):
    """The function ran and completes itself, and the store could not be asked yet whether its transaction committed."""


class Parked(Error):
    """The work may or may not have taken effect, or its attempts are used up: a person must look first."""


class Mismatched(Error):
    """The key is known for other work: the same key with other arguments."""


class Stale(Error):
    """This run was overtaken: another run, or an operator, owns the key now."""


class Failed(Error):
    """The work failed for good; ``exception_name`` is the class that said so, ``exception`` the exception itself where
    it could be made again."""

    def __init__(self, message: str, exception_name: str = "", exception: BaseException | None = None) -> None:
        super().__init__(message, exception_name)
        self.exception_name = exception_name
        self.exception = exception


class NotCompleted(Error):
    """The function says ``completes="handler"`` and returned without :func:`semel.complete`: nothing is recorded as done."""


class NotKept(Error):
    """The work succeeded, but its value was too large or not JSON, so only the first caller has it."""


class KeyRefused(Error):
    """The call has no key; ``code`` is the same word in every language."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message, code)
        self.code = code


class StepRefused(Error):
    """A step could not be begun or recorded; let it leave the function, so that the run ends."""

    def __init__(self, message: str, is_final: bool = False) -> None:
        super().__init__(message, is_final)
        self.is_final = is_final
