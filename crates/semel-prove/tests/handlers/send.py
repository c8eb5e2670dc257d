"""Delivers one order: the port, the order. Ends with 0 when it was accepted."""

import json
import sys
import urllib.request

port, order = sys.argv[1:]
urllib.request.urlopen(f"http://127.0.0.1:{port}/", json.dumps({"order": order}).encode(), timeout=5).close()
