#!/usr/bin/env bash
# Runs once, while the image is built.
set -euo pipefail

# The user's name and number are those of the official image.
cat > /etc/passwd <<'USERS'
root:x:0:0:root:/root:/bin/bash
node:x:1000:1000:Node:/home/node:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
USERS
cat > /etc/group <<'GROUPS'
root:x:0:
node:x:1000:
nogroup:x:65534:
GROUPS
printf 'passwd: files\ngroup: files\nhosts: files dns\n' > /etc/nsswitch.conf

install -d -m 1777 /tmp
install -d -o node -g node /home/node
ldconfig
node --version
rm -- "$0"
