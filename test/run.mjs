// `npm test [-- part [filter …]]`: every test that decides a change. It runs on a fresh clone with nothing but Node 20
// and npm, installs and builds what it needs, and does the rest on a private stack beside whatever `npm start` runs.
// The last line is always `N passed, N failed`; the exit code is 0 only when nothing failed.
//
//   npm test                                   everything, in order
//   npm test -- unit libs/hba                  one part, those files
//   npm test -- e2e create -t 'lost reply'     filters are Jest's
//   SUREFOOT_KEEP=1 npm test -- e2e            leaves the stack running, and says where

import process from 'node:process';

try {
  const { runInOrder } = await import('./in-order.mjs');
  process.exitCode = await runInOrder(process.argv.slice(2));
} catch (error) {
  console.log(error.stack);
  console.log('0 passed, 1 failed');
  process.exitCode = 1;
}
// A handle that something left open must not keep the answer waiting.
process.exit();
