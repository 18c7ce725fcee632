/**
 * What a service and the daemon say goes into reasons that people read, and a service can say anything: every form of its
 * own secrets in which a program is likely to print them is taken out first.
 */
import { CA_FILE, DATABASE_URL_FILE } from '#protocol';
import type { EffectSecrets } from './contract.ts';

const HIDDEN = '…';
/** Of a secret with several lines (a key, for one), each line is secret; short ones say nothing, and are in every text. */
const LINE_MIN_LENGTH = 8;

/** Forms are found by their first characters: a service may have many keys, and each of their lines is a secret. */
const START_LENGTH = LINE_MIN_LENGTH;

/** @returns what takes secrets out of a text; to be used before anything is cut off it */
export function redaction(files: EffectSecrets['files'] = {}): (text: string) => string {
  let forms: ReturnType<typeof formsIn> | undefined;
  return (text) => {
    forms ??= formsIn(files);
    const shown = withoutLong(text, forms.byStart);
    return forms.short.reduce((rest, form) => rest.replaceAll(form, HIDDEN), shown);
  };
}

interface Forms {
  /** By their first characters; of those that begin alike the longest first, since a part must not break the whole. */
  readonly byStart: ReadonlyMap<string, readonly string[]>;
  readonly short: readonly string[];
}

function formsIn(files: NonNullable<EffectSecrets['files']>): Forms {
  const secrets = Object.entries(files)
    .filter(([name]) => name !== CA_FILE)
    .flatMap(([name, content]) => [content, ...(name === DATABASE_URL_FILE ? passwordsOf(content) : [])]);
  const all = [...new Set(secrets.flatMap(partsOf).flatMap(formsOf))].sort((one, other) => other.length - one.length);
  const byStart = Map.groupBy(
    all.filter((form) => form.length >= START_LENGTH),
    (form) => form.slice(0, START_LENGTH),
  );
  return { byStart, short: all.filter((form) => form.length < START_LENGTH) };
}

function withoutLong(text: string, byStart: Forms['byStart']): string {
  let shown = '';
  for (let at = 0; at < text.length;) {
    const form = byStart.get(text.slice(at, at + START_LENGTH))?.find((one) => text.startsWith(one, at));
    shown += form === undefined ? text.charAt(at) : HIDDEN;
    at += form?.length ?? 1;
  }
  return shown;
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
