#!/usr/bin/env bash
# Gives up root's rights and becomes the server, or whatever else it is asked to run.
set -euo pipefail

if [[ ${1:-} == rabbitmq* && $(id -u) == 0 ]]; then
  # A volume that another image filled may belong to another user.
  find /var/lib/rabbitmq \! -user rabbitmq -exec chown rabbitmq {} +
  exec gosu rabbitmq "$BASH_SOURCE" "$@"
fi

exec "$@"
