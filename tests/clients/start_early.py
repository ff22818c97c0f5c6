"""Start unchanged applications of Ryu or of an early os-ken, with an eventlet that runs on today's Python.

    python start_early.py ryu|os_ken OPTION ... APPLICATION ...

Both expect eventlet's marker for responses that were already sent. Eventlet has removed it, and nothing here
uses it.
"""

import importlib
import sys
import warnings

warnings.filterwarnings("ignore")
importlib.import_module("eventlet.wsgi").ALREADY_HANDLED = object()

framework = sys.argv.pop(1)
sys.argv[0] = f"{framework}-manager"
importlib.import_module(f"{framework}.cmd.manager").main()
