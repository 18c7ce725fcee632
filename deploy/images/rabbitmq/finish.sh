#!/usr/bin/env bash
# Runs once, while the image is built.
set -euo pipefail

cat > /etc/passwd <<'USERS'
root:x:0:0:root:/root:/bin/bash
rabbitmq:x:999:999:RabbitMQ:/var/lib/rabbitmq:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
USERS
cat > /etc/group <<'GROUPS'
root:x:0:
rabbitmq:x:999:
nogroup:x:65534:
GROUPS
printf 'passwd: files\ngroup: files\nhosts: files dns\n' > /etc/nsswitch.conf

install -d -m 1777 /tmp
# Open to any user, as in the official image: the server may be run under another one (docker run --user).
install -d -o rabbitmq -g rabbitmq -m 1777 /var/lib/rabbitmq /var/log/rabbitmq /etc/rabbitmq /etc/rabbitmq/conf.d
printf '[rabbitmq_management].\n' > /etc/rabbitmq/enabled_plugins

# Debian wraps the server's own scripts in one that insists on its service user; the scripts themselves are here.
install -d /opt
ln -s "$(echo /usr/lib/rabbitmq/lib/rabbitmq_server-*)" /opt/rabbitmq
ldconfig
rm -- "$0"
