#!/usr/bin/env bash
# Runs once, while the image is built.
set -euo pipefail

cat > /etc/passwd <<'USERS'
root:x:0:0:root:/root:/bin/bash
postgres:x:999:999:PostgreSQL:/var/lib/postgresql:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
USERS
cat > /etc/group <<'GROUPS'
root:x:0:
postgres:x:999:
nogroup:x:65534:
GROUPS
printf 'passwd: files\ngroup: files\nhosts: files dns\n' > /etc/nsswitch.conf
ln -sf /usr/share/zoneinfo/Etc/UTC /etc/localtime

install -d -m 1777 /tmp
install -d /docker-entrypoint-initdb.d
install -d -o postgres -g postgres /var/lib/postgresql
# Open to any user, as in the official image: the server may be run under another one (docker run --user).
install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data
install -d -o postgres -g postgres -m 3777 /run/postgresql

# A container's only way in is its network: initdb copies this file, whose default is loopback alone.
sed -ri "s/^#?listen_addresses = .*/listen_addresses = '*'/" /usr/share/postgresql/17/postgresql.conf.sample
ldconfig
rm -- "$0"
