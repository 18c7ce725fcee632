import { fileURLToPath } from 'node:url';

/** The folder that everything of the project lies in. */
export const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');
