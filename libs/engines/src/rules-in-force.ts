import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sentinelUser } from '#kernel';
import { CERTIFICATE_FILE } from './layout.ts';
import type { ScramAnswer } from './scram-question.ts';
import { askForScram } from './scram-question.ts';

const TIMEOUT_MS = 3_000;

/** Where to ask; libs/effects' EnginePlace has it. */
export interface PublishedEngine {
  readonly port: number;
  readonly caFile: string;
  readonly confFolder: string;
}

/** Whether this engine, at its published address, has loaded this generation of its rules: asked, not concluded. */
export async function askForGeneration(place: PublishedEngine, generation: number): Promise<ScramAnswer> {
  const certificate = await readFile(join(place.confFolder, CERTIFICATE_FILE));
  return askForScram(
    {
      port: place.port,
      user: sentinelUser(generation),
      ca: await readFile(place.caFile, 'utf8'),
      fingerprint: new X509Certificate(certificate).fingerprint256,
    },
    TIMEOUT_MS,
  );
}
