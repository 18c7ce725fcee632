import { expect, test } from '@jest/globals';
import { Batched } from './batched.ts';

function world() {
  const looks: { ids: readonly string[]; answer: PromiseWithResolvers<readonly { id: string }[]> }[] = [];
  const batched = new Batched<{ id: string }>((ids) => {
    const answer = Promise.withResolvers<readonly { id: string }[]>();
    looks.push({ ids, answer });
    return answer.promise;
  });
  return { batched, looks };
}

const arrived = () => new Promise((resolve) => setImmediate(resolve));

test('what comes together is read together, each id once', async () => {
  const { batched, looks } = world();
  const finds = ['a', 'b', 'a'].map((id) => batched.find(id));
  await arrived();
  expect(looks.map(({ ids }) => ids)).toEqual([['a', 'b']]);
  looks[0]!.answer.resolve([{ id: 'b' }]);
  expect(await Promise.all(finds)).toEqual([undefined, { id: 'b' }, undefined]);
});

test('a read is never answered by a look that began before it came', async () => {
  const { batched, looks } = world();
  const early = batched.find('a');
  await arrived();
  const late = batched.find('a');
  await arrived();
  expect(looks).toHaveLength(1);
  looks[0]!.answer.resolve([{ id: 'a' }]);
  expect(await early).toEqual({ id: 'a' });
  await arrived();
  looks[1]!.answer.resolve([]);
  expect(await late).toBeUndefined();
});

test('what comes one by one while a look is under way goes into the next, together', async () => {
  const { batched, looks } = world();
  const finds: Promise<unknown>[] = [];
  for (const id of ['a', 'b', 'c', 'd']) {
    finds.push(batched.find(id));
    await arrived();
  }
  looks[0]!.answer.resolve([]);
  await arrived();
  expect(looks.map(({ ids }) => ids)).toEqual([['a'], ['b', 'c', 'd']]);
  looks[1]!.answer.resolve([]);
  expect(await Promise.all(finds)).toHaveLength(4);
});

test('a look that fails fails those who waited meanwhile too, and nobody after them', async () => {
  const { batched, looks } = world();
  const first = batched.find('a');
  await arrived();
  const meanwhile = batched.find('b');
  looks[0]!.answer.reject(new Error('down'));
  await expect(first).rejects.toThrow('down');
  await expect(meanwhile).rejects.toThrow('down');
  const second = batched.find('a');
  await arrived();
  looks[1]!.answer.resolve([{ id: 'a' }]);
  expect(await second).toEqual({ id: 'a' });
});
