"""Runs a script under Mininet's own Python, where it finds `loko_testbed.mininet`.

python run_script.py SCRIPT ARGUMENT ...        (`loko mininet SCRIPT ARGUMENT ...` starts it)
"""

import runpy
import sys
from pathlib import Path

del sys.argv[0]
sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
sys.path.append(str(Path(__file__).resolve().parents[2]))
runpy.run_path(sys.argv[0], run_name="__main__")
