"""Lets a test stop a run at a named point: the run writes a file there, and waits for another one."""

import os
import pathlib
import time

DIRECTORY = pathlib.Path(os.environ["POINTS"])


def reach(point, asked):
    """Stops here if `asked` names this point, until the test lets it go on."""
    if asked != point:
        return
    (DIRECTORY / f"{point}.reached").touch()
    while not (DIRECTORY / f"{point}.go").exists():
        time.sleep(0.005)
