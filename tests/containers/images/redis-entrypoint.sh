#!/bin/sh
# As the official image does it: nobody's word but the network's is asked for, and nothing runs as root.
set -eu
if [ "${1:-redis-server}" = redis-server ]; then
  [ $# = 0 ] || shift
  set -- redis-server --protected-mode no "$@"
fi
if [ "$(id -u)" = 0 ]; then
  chown redis:redis .
  exec setpriv --reuid=redis --regid=redis --clear-groups "$@"
fi
exec "$@"
