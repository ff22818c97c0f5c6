"""Start applications of os-ken, which no longer ships a program for that.

python start_os_ken.py OPTION ... -- APPLICATION ...
"""

import sys

from os_ken import cfg, log
from os_ken.base.app_manager import AppManager

log.early_init_log()
separator = sys.argv.index("--")
applications = ["os_ken.controller.ofp_handler", *sys.argv[separator + 1 :]]
manager = AppManager.get_instance()
manager.load_apps(applications)  # this also declares the options
cfg.CONF(args=sys.argv[1:separator], project="os_ken")
log.init_log()
AppManager.run_apps(applications)
