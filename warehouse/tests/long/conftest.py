"""These take too long for every change: `cargo xtask test --long --only warehouse` runs them."""

import os

collect_ignore_glob = [] if os.environ.get("SEMEL_TEST_LONG") else ["test_*.py"]
