"""What an operator decides: settings in effect, plugins and their states, starts."""

from kernel.libs import mapped
from kernel.libs.children.confinement import Reach
from kernel.libs.slots import take_slot
from kernel.plugins.actions import Tier
from kernel.plugins.diagnostics import PluginPackage
from kernel.plugins.loading import PluginRecord
from kernel.plugins.offers import OFFERS
from kernel.plugins.plugin_settings import PLUGIN_SETTINGS
from kernel.process.machine_faults import FOR_OPERATORS, Fault
from kernel.process.restarting import request_restart
from kernel.process.start_guards import Opening, StartGuard
from kernel.settings.checks import WrittenFolder, hosts_and_networks, origins
from kernel.settings.loading import KernelSettings, Source
from kernel.settings.shown import ShownSetting, settings_in_effect
from kernel.version import data_folder, fits_contract

__all__ = [
    "FOR_OPERATORS",
    "OFFERS",
    "PLUGIN_SETTINGS",
    "Fault",
    "KernelSettings",
    "Opening",
    "PluginPackage",
    "PluginRecord",
    "Reach",
    "ShownSetting",
    "Source",
    "StartGuard",
    "Tier",
    "WrittenFolder",
    "data_folder",
    "fits_contract",
    "hosts_and_networks",
    "mapped",
    "origins",
    "request_restart",
    "settings_in_effect",
    "take_slot",
]
