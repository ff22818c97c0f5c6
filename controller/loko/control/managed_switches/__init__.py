"""The configuration of switches without OpenFlow for a plan, in words and as commands.

`settings` says what each switch must do; a module for each family of switches says it in its commands. None
of these commands has been typed on hardware (docs/devices.md, "Switches without OpenFlow").
"""

from loko.control.managed_switches.fastpath import fastpath_commands
from loko.control.managed_switches.linux import linux_commands
from loko.control.managed_switches.settings import (
    FlowMarking,
    NetworkSettings,
    SwitchSettings,
    VlanSettings,
    network_settings,
)
from loko.control.managed_switches.words import in_words

__all__ = [
    "FlowMarking",
    "NetworkSettings",
    "SwitchSettings",
    "VlanSettings",
    "fastpath_commands",
    "in_words",
    "linux_commands",
    "network_settings",
]
