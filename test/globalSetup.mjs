import vm from 'node:vm';

/** Without the flag Jest silently runs everything as CommonJS, where the sources mean something else. */
export default function assertEsModules() {
  if (typeof vm.SourceTextModule !== 'function') {
    throw new Error('Jest runs without --experimental-vm-modules: use `npm run jest -- …` or `npm test`.');
  }
}
