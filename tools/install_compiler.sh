#!/bin/sh
# The exhaustive faults (tools/exhaustive_faults.py) compile a small C library. Where there is no compiler and none can be
# installed, their tests skip with a message (and fail when CI is set).
set -u
command -v cc >/dev/null 2>&1 && exit 0
command -v gcc >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq gcc libc6-dev >/dev/null && exit 0
fi
echo "No C compiler found: the exhaustive faults will be skipped."
echo "On Debian or Ubuntu: sudo apt-get install gcc libc6-dev"
exit 0
