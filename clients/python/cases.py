"""What the programs of cases share: a case is a function of its own, and all of them run whatever one says."""

import contextlib
import json
import sys
import traceback

CASES = []


def case(function):
    CASES.append(function)
    return function


def run(world):
    """Runs every case and says of each whether it held, a line of JSON each; ends with an error if one did not."""
    failed = 0
    for function in CASES:
        why = ""
        try:
            function(world)
        except Exception as error:  # Also what a client raises: the next case is another matter.
            why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            traceback.print_exc()
            failed += 1
        print(json.dumps({"case": function.__name__, "held": not why, "why": why}), flush=True)
    sys.exit(1 if failed else 0)


def same(seen, expected):
    assert seen == expected, f"saw {seen!r}, not {expected!r}"


@contextlib.contextmanager
def raises(kind, words=""):
    """What is inside must be refused with this exception, and with these words."""
    try:
        yield
    except kind as error:
        assert words in str(error), f"refused with {error}, not {words!r}"
    else:
        raise AssertionError(f"nothing was refused; {kind.__name__} was expected")
