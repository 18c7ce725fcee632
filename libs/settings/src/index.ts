export { enginePlace, socketFolder } from './engine-place.ts';
export { hostLockFiles } from './host-lock-files.ts';
export { homePaths } from './home-paths.ts';
export type { HomePaths } from './home-paths.ts';
export { InvalidSettings } from './local-env.ts';
export { checkPrivateFolder, readPrivateFile, UnsafeState } from './private-file.ts';
export { open, readSealingKey, seal, SealBroken } from './sealer.ts';
export { homeFromEnvironment, loadSettings } from './settings.ts';
export type { LogLevel, Settings } from './settings.ts';
