#!/usr/bin/env bash
# For the tests only: a browser that opens the service's page, and its driver. If the distribution has no such packages
# (Ubuntu offers Chromium only as a snap), a note says so, and the tests are skipped.
. "$(dirname "$0")/step.sh"
alone

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi

say "installing chromium and chromium-driver"
rm -f "$state/browser.log"
if ! "$root/setup/apt-install.sh" browser chromium chromium-driver; then
    say "note: no packages chromium and chromium-driver here; the tests of the page are skipped"
fi
