import { fileURLToPath } from 'node:url';

/** A file that an engine begins with. The build copies them beside the compiled library. */
export function engineAsset(name: string): string {
  return fileURLToPath(new URL(`../assets/${name}`, import.meta.url));
}
