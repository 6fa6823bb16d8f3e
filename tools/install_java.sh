#!/bin/sh
# The tests of the Spark engine start a small cluster on this machine, for which PySpark needs Java 17 or newer. Debian's
# package has it; where it cannot be installed the tests skip with a message (and fail when CI is set).
set -u
command -v java >/dev/null 2>&1 && exit 0
[ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null && exit 0
fi
echo "No Java found: the tests of the Spark engine will be skipped."
echo "On Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless"
exit 0
