/**
 * What a service and the daemon say goes into reasons that people read, and a service can say anything: every form of its
 * own secrets in which a program is likely to print them is taken out first.
 */
import { CA_FILE, DATABASE_URL_FILE } from '#protocol';
import type { EffectSecrets } from './contract.ts';

const HIDDEN = '…';
/** Of a secret with several lines (a key, for one), each line is secret; short ones say nothing, and are in every text. */
const LINE_MIN_LENGTH = 8;

/** @returns what takes secrets out of a text; to be used before anything is cut off it */
export function redaction(files: EffectSecrets['files'] = {}): (text: string) => string {
  const secrets = Object.entries(files)
    .filter(([name]) => name !== CA_FILE)
    .flatMap(([name, content]) => [content, ...(name === DATABASE_URL_FILE ? passwordsOf(content) : [])]);
  const forms = new Set(secrets.flatMap(partsOf).flatMap(formsOf));
  // The longest first: a part must not break the whole.
  const patterns = [...forms].sort((one, other) => other.length - one.length).map(escaped);
  if (patterns.length === 0) return (text) => text;
  const any = new RegExp(patterns.join('|'), 'g');
  return (text) => text.replaceAll(any, HIDDEN);
}

function partsOf(secret: string): readonly string[] {
  const lines = secret.split(/\r?\n/).map((line) => line.trim());
  return [secret, secret.trim(), ...lines.filter((line) => line.length >= LINE_MIN_LENGTH)].filter(
    (part) => part !== '',
  );
}

function formsOf(part: string): readonly string[] {
  const encoded = encodeURIComponent(part.toWellFormed());
  const lower = encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
  return [part, encoded, lower, encoded.replaceAll('%20', '+'), JSON.stringify(part).slice(1, -1)];
}

/** As it stands in the URL, and as it is meant. */
function passwordsOf(databaseUrl: string): readonly string[] {
  const password = URL.parse(databaseUrl.trim())?.password ?? '';
  if (password === '') return [];
  try {
    return [password, decodeURIComponent(password)];
  } catch {
    return [password];
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
