import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRecent } from './compose.mjs';
import { chooseArchive, parseTargets } from './debian-archive.mjs';
import { socketOf } from './docker-cli.mjs';

test('a Compose that lacks what we use is not taken', () => {
  for (const version of ['2.24.0', 'v2.26.1', '2.26.1-4', '5.0.1\n']) assert.equal(isRecent(version), true, version);
  for (const version of ['2.23.3', 'v2.6.0', '1.29.2', '']) assert.equal(isRecent(version), false, version);
});

test("the archive is the machine's own, with its security updates", () => {
  const text = [
    'Docker\tDocker CE\tbookworm\thttp://example.test/docker/',
    'Debian\tDebian\tbookworm-updates\thttp://mirror.test/debian/',
    'Debian\tDebian\tbookworm\thttp://mirror.test/debian/',
    'Debian\tDebian-Security\tbookworm-security\thttp://mirror.test/debian-security/',
    '',
  ].join('\n');
  assert.deepEqual(chooseArchive(parseTargets(text)), {
    family: 'Debian',
    codename: 'bookworm',
    uri: 'http://mirror.test/debian/',
    securityUri: 'http://mirror.test/debian-security/',
  });
  assert.equal(chooseArchive(parseTargets('Docker\tDocker CE\tbookworm\thttp://example.test/\n')), undefined);
});

test('only a daemon on this machine can be used: it mounts our folders', () => {
  assert.equal(socketOf('unix:///run/user/1000/docker.sock'), '/run/user/1000/docker.sock');
  for (const host of ['tcp://10.0.0.1:2375', 'ssh://me@host', 'npipe:////./pipe/docker']) {
    assert.throws(() => socketOf(host), /must be on this machine/);
  }
});
