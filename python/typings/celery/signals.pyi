from typing import Any, Callable

class _Signal:
    def connect(self, receiver: Callable[..., None], *, weak: bool, dispatch_uid: str) -> Any: ...

worker_init: _Signal
worker_process_shutdown: _Signal
