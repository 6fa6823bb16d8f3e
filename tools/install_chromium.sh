#!/bin/sh
# The report's tests look at it in a real browser. Debian's chromium is one; where it cannot be installed the tests
# skip with a message (and fail when CI is set).
set -u
for program in chromium chromium-browser google-chrome; do
  command -v "$program" >/dev/null 2>&1 && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null && exit 0
fi
echo "No chromium found: the browser tests of the report will be skipped."
echo "On Debian or Ubuntu: sudo apt-get install chromium"
exit 0
