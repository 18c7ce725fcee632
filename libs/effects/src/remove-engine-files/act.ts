/**
 * Removes the folder of an engine that could not be made, once no container can have it mounted: nobody needs its password
 * and its key any more. The folder has the engine's id, which is never used again, so a repetition finds nothing.
 */
import { existsSync, rmSync } from 'node:fs';
import { basename } from 'node:path';
import type { Act } from '../contract.ts';
import { applied, refused } from '../contract.ts';

export const act: Act<'remove-engine-files'> = async ({ engine }, { engineId }) => {
  if (basename(engine.folder) !== engineId)
    return refused('foreign_object', `${engine.folder} is not the folder of engine ${engineId}`);
  if (!existsSync(engine.folder)) return applied({ alreadyAbsent: true });
  rmSync(engine.folder, { recursive: true });
  return applied();
};
