#!/usr/bin/env bash
# For the tests only: a browser that looks at the service's page, and the program that drives it. Where the distribution
# has no such packages (Ubuntu has Chromium as a snap only), this is said and the tests are skipped.
. "$(dirname "$0")/step.sh"
alone

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi

say "installing chromium and chromium-driver"
rm -f "$state/browser.log"
if ! "$root/setup/apt-install.sh" browser chromium chromium-driver; then
    say "note: no packages chromium and chromium-driver here; the tests of the page are skipped"
fi
