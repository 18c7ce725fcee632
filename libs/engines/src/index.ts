export { engineAsset } from './assets.ts';
export { DiskFull, ensureFolder, placeConfFile, readIfThere, replaceConfFile } from './conf-files.ts';
export { engineContainerRequest, imageFault, STOP_TIMEOUT_SECONDS } from './container.ts';
export { sha256 } from './digest.ts';
export { FileLockBusy, withFileLock } from './file-lock.ts';
export { attemptName, CERTIFICATE_FILE, RULE_FILE } from './layout.ts';
export { EngineAway, findTokens, isStopped, observePin, pinOf, readServer } from './observe.ts';
export { askForGeneration } from './rules-in-force.ts';
