#!/bin/sh
# The ledger's tests start a throw-away PostgreSQL server. Debian's package has it; where it cannot be installed
# the tests skip with a message (and fail when CI is set).
set -u
for directory in /usr/lib/postgresql/*/bin; do
  [ -x "$directory/initdb" ] && exit 0
done
command -v initdb >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  export DEBIAN_FRONTEND=noninteractive
  # The package would start a cluster of its own; the tests want only the programs.
  apt-get update -qq && mkdir -p /etc/postgresql-common && \
    printf 'create_main_cluster = false\n' >/etc/postgresql-common/createcluster.conf && \
    apt-get install -y -qq -o Dpkg::Options::=--force-confold postgresql >/dev/null && exit 0
fi
echo "No PostgreSQL server programs found: the ledger's PostgreSQL tests will be skipped."
echo "On Debian or Ubuntu: sudo apt-get install postgresql"
exit 0
