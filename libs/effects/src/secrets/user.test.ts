import { describe, expect, test } from '@jest/globals';
import { resolveUser } from './user.ts';

const passwd = [
  'root:x:0:0:root:/root:/bin/bash',
  'app:x:1000:1001::/home/app:/bin/sh',
  '4711:x:1500:1501::/:/bin/sh',
  '# none',
  '',
];
const group = ['root:x:0:', 'app:x:1001:', 'extra:x:2000:app', ''];

describe('the user of a container', () => {
  test.each([
    ['', { uid: 0, gid: 0 }],
    ['root', { uid: 0, gid: 0 }],
    ['app', { uid: 1000, gid: 1001 }],
    ['app:extra', { uid: 1000, gid: 2000 }],
    ['app:77', { uid: 1000, gid: 77 }],
    ['1000', { uid: 1000, gid: 1001 }],
    ['1000:extra', { uid: 1000, gid: 2000 }],
    ['77', { uid: 77, gid: 0 }],
    ['77:78', { uid: 77, gid: 78 }],
    [':extra', { uid: 0, gid: 2000 }],
    // A number is an id, though somebody has it for a name.
    ['4711', { uid: 4711, gid: 0 }],
    ['ghost', undefined],
    ['app:ghosts', undefined],
    ['-1', undefined],
    ['99999999999', undefined],
  ])('%j', (text, user) => {
    for (const end of ['\n', '\r\n']) expect(resolveUser(text, passwd.join(end), group.join(end))).toEqual(user);
  });

  test('of an image without users is a number, or nobody', () => {
    expect(resolveUser('', '', '')).toEqual({ uid: 0, gid: 0 });
    expect(resolveUser('12:13', '', '')).toEqual({ uid: 12, gid: 13 });
    expect(resolveUser('app', '', '')).toBeUndefined();
    expect(resolveUser('12:app', '', '')).toBeUndefined();
  });

  test('whose entry is broken is not made root', () => {
    expect(resolveUser('app', 'app:x::', '')).toBeUndefined();
    expect(resolveUser('app', 'app', '')).toBeUndefined();
    expect(resolveUser('app', 'app:x:abc:1', '')).toBeUndefined();
  });
});
