import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { LOCAL_ENV_NAMES, parseLocalEnv, renderLocalEnv } from './local-env.mjs';

const example = Object.fromEntries(
  LOCAL_ENV_NAMES.map((name, index) => [name, `amqp://a-b_c:d@127.0.0.1:${index}/x?y=z%20`]),
);

test('what is written is read back', () => {
  assert.deepEqual(parseLocalEnv(renderLocalEnv(example)), example);
});

test('a line that someone added is kept, after ours', () => {
  const values = { SUREFOOT_BLOCK_SCOPE: 'host', ...example };
  const text = renderLocalEnv(values);
  assert.deepEqual(parseLocalEnv(text), values);
  assert.ok(text.indexOf('SUREFOOT_BLOCK_SCOPE') > text.indexOf(LOCAL_ENV_NAMES.at(-1) ?? ''));
});

test('a shell that sources it sees the same values', () => {
  const script = `set -eu; ${renderLocalEnv(example)}\nprintf %s "$SUREFOOT_BROKER_URL"`;
  assert.equal(execFileSync('sh', ['-c', script], { encoding: 'utf8' }), example.SUREFOOT_BROKER_URL);
});

for (const value of ['a b', 'a&b', 'a;b', "a'b", 'a"b', 'a$b', 'a`b', 'a\nb', 'a\\b', 'a#b', 'a(b']) {
  test(`a value that a shell would read otherwise is refused without being told: ${JSON.stringify(value)}`, () => {
    const values = { ...example, SUREFOOT_API_KEY: `secret${value}` };
    assert.throws(
      () => renderLocalEnv(values),
      (/** @type {Error} */ error) => error.message.includes('SUREFOOT_API_KEY') && !error.message.includes('secret'),
    );
  });
}

test('a line that is not NAME=value is refused with its number', () => {
  assert.throws(() => parseLocalEnv('# head\nSUREFOOT_URL=http://x\nexport A=1\n'), /line 3/);
});
