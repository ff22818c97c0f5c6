"""Start applications of Ryu or of an early os-ken, unchanged, on an eventlet that runs on today's Python.

    python start_early.py ryu|os_ken OPTION ... APPLICATION ...

Both ask eventlet for a mark of responses that were sent already. It has none any more, and nothing here sends
such.
"""

import importlib
import sys
import warnings

warnings.filterwarnings("ignore")
importlib.import_module("eventlet.wsgi").ALREADY_HANDLED = object()

framework = sys.argv.pop(1)
sys.argv[0] = f"{framework}-manager"
importlib.import_module(f"{framework}.cmd.manager").main()
