"""Which providers and drivers the Vagrantfile chooses, and what it says. Needs Ruby, but not Vagrant."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

VAGRANTFILE = (Path(__file__).resolve().parents[3] / "Vagrantfile").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(shutil.which("ruby") is None, reason="needs Ruby (apt-get install ruby)")

STAND_IN = """
require "json"
GIVEN = JSON.parse(%s)
%%w[VAGRANT_DEFAULT_PROVIDER LOKO_DRIVER LOKO_PATIENCE LOKO_BOX].each { |name| ENV.delete(name) }
ENV.update(GIVEN["variables"])
module Vagrant
  def self.has_plugin?(name) = GIVEN["plugins"].include?(name)
  def self.configure(_version); end
  module Util
    module Which
      def self.which(_name) = nil
    end
  end
end
class File
  class << self
    alias really_exist? exist?
    def exist?(path)
      return GIVEN["kvm"] != "missing" if path == "/dev/kvm"

      path == "/proc/cpuinfo" || really_exist?(path)
    end
    def writable?(_path) = GIVEN["kvm"] == "writable"
    def foreach(_path) = ["model name\\t: any\\n", "flags\\t\\t: fpu #{GIVEN["flags"]} sse\\n"].each
  end
end
"""
TOLD = """
provider = ENV["VAGRANT_DEFAULT_PROVIDER"]
puts JSON.dump(provider: provider, driver: DRIVER, words: DRIVER_WORDS, patience: PATIENCE)
"""


def chosen(*, plugins=("vagrant-libvirt",), kvm="writable", flags="vmx", **variables):
    given = {"plugins": plugins, "kvm": kvm, "flags": flags, "variables": variables}
    script = STAND_IN % json.dumps(json.dumps(given)) + VAGRANTFILE + TOLD
    done = subprocess.run(["ruby", "-"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_libvirt_is_the_default_only_where_its_plugin_is():
    assert chosen()["provider"] == "libvirt"
    assert chosen(plugins=[])["provider"] is None
    assert chosen(VAGRANT_DEFAULT_PROVIDER="virtualbox")["provider"] == "virtualbox"


@pytest.mark.parametrize("flags", ["vmx", "svm"])
def test_with_hardware_virtualisation_it_is_used(flags):
    settings = chosen(flags=flags)
    assert (settings["driver"], settings["patience"]) == ("kvm", "1")
    assert "driver kvm" in settings["words"]


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        ({"flags": ""}, "the processor offers no virtualisation here"),
        ({"kvm": "missing"}, "there is no /dev/kvm"),
        ({"kvm": "closed"}, "this user may not write to /dev/kvm: 'sudo adduser "),
    ],
)
def test_emulation_is_told_with_its_reason_and_gets_patience(machine, reason):
    settings = chosen(**machine)
    assert (settings["driver"], settings["patience"]) == ("qemu", "20")
    assert reason in settings["words"]
    assert "13 to 15 times slower" in settings["words"]


def test_what_the_user_asks_for_is_told_as_such():
    settings = chosen(flags="", LOKO_DRIVER="kvm")
    assert settings["driver"] == "kvm"
    assert settings["words"] == "driver kvm, as LOKO_DRIVER says"
