/** What a schema found wrong, as field errors: all of them at once, each with a stable code and a sentence. */
import { type FieldFault, Problem } from '#kernel';
import { isNear } from './near-miss.ts';

/** An issue of the Standard Schema, with what zod's hold beyond. */
interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  readonly code?: string | undefined;
  readonly keys?: readonly string[];
  readonly expected?: string;
  readonly origin?: string;
  readonly minimum?: number | bigint;
  readonly maximum?: number | bigint;
  readonly values?: readonly unknown[];
  readonly params?: { readonly code?: string } | undefined;
  /** Of the key, where a key of a record is wrong. */
  readonly issues?: readonly { readonly message: string }[];
}

/** Fields that DESIGN has and this version has not, beside those that a schema itself refuses. */
const LATER_FIELDS: ReadonlySet<string> = new Set(['ttl']);

export function invalidRequest(issues: readonly Issue[]): Problem {
  const errors = issues.flatMap(toFaults);
  const onlyLater = errors.every((fault) => fault.code === 'not_supported');
  const fields = [...new Set(errors.map((fault) => fault.field))].filter((field) => field !== '');
  const named = fields.length === 0 ? '' : `: ${fields.join(', ')}`;
  return onlyLater
    ? new Problem('not_supported', `not built yet${named}`, { errors })
    : new Problem('invalid_request', detailOf(errors), { errors });
}

/** The first in words: whoever shows only the detail shows what to do. */
function detailOf([first, ...more]: readonly FieldFault[]): string {
  if (first === undefined) return 'see "errors"';
  const others = more.length === 0 ? '' : `; and ${more.length} more, see "errors"`;
  return `${first.field === '' ? 'the body' : first.field}: ${first.message}${others}`;
}

export function fieldFault(field: string, code: string, message: string): Problem {
  const errors = [{ field, code, message }];
  return new Problem('invalid_request', detailOf(errors), { errors });
}

function toFaults(issue: Issue): readonly FieldFault[] {
  const path = (issue.path ?? []).map((part) => (typeof part === 'object' ? part.key : part));
  if (issue.code === 'unrecognized_keys')
    return (issue.keys ?? []).map((key) => ({
      field: fieldPath([...path, key]),
      ...(LATER_FIELDS.has(key)
        ? { code: 'not_supported', message: 'this field is not built yet' }
        : { code: 'unknown_field', message: unknownField(key, issue.message) }),
    }));
  const missing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  const code = issue.params?.code ?? (missing ? 'required' : (issue.code ?? 'invalid'));
  const ofKey = issue.code === 'invalid_key' ? issue.issues?.[0]?.message : undefined;
  const message = missing && path.length > 0 ? 'this field is needed' : (ofKey ?? plainText(issue, path));
  return [{ field: fieldPath(path), code, message }];
}

/** `services[0].name`; empty for the whole body. */
function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

/** Zod's own sentences begin so; those of our schemas do not. */
const OF_ZOD = /^(Invalid|Too|Unrecognized) /;

const NEEDED: Readonly<Record<string, string>> = {
  string: 'text in quotes is needed',
  array: 'a list is needed',
  object: 'an object is needed',
  record: 'an object is needed',
  boolean: 'true or false is needed',
  int: 'a whole number is needed',
  number: 'a number is needed',
};

/** What is right there, by the path without its numbers. Constants: what was sent may be a secret, and is never quoted. */
const EXAMPLES: Readonly<Record<string, string>> = {
  extensions: '["pgcrypto"]',
  labels: '{"team": "checkout"}',
  services: '[{"name": "api", "image": "team/api:1"}]',
  'services[]': '{"name": "api", "image": "team/api:1"}',
  'services[].name': '"api"',
  'services[].image': '"team/api:1"',
  'services[].command': '["serve", "--port", "8080"]',
  'services[].command[]': '"8080"',
  'services[].env': '{"MODE": "test"}',
  'services[].env.*': '"8080" or "true"',
  'services[].secrets': '{"session_key": "…"}',
  'services[].ports': '[8080]',
  'services[].ports[]': '8080',
  'services[].health': '{"http": {"port": 8080, "path": "/health"}}',
  'services[].health.http': '{"port": 8080, "path": "/health"}',
  'services[].health.http.port': '8080',
  'services[].health.http.path': '"/health"',
  'services[].health.tcp': '{"port": 8080}',
  'services[].health.tcp.port': '8080',
  'services[].limits': '{"memory": "256m", "cpus": 0.5}',
  'services[].user': '"redis" or "1000:1000"',
};

/** A sentence that says what is allowed, where zod says what it calls things. */
function plainText(issue: Issue, path: readonly PropertyKey[]): string {
  if (!OF_ZOD.test(issue.message)) return issue.message;
  const example = exampleOf(path);
  const such = example === undefined ? '' : `, such as ${example}`;
  switch (issue.code) {
    case 'invalid_type':
      return `${NEEDED[issue.expected ?? ''] ?? `${issue.expected ?? 'something else'} is needed`}${such}`;
    case 'invalid_value':
      return `one of ${(issue.values ?? []).map((value) => JSON.stringify(value)).join(', ')} is needed`;
    case 'too_small':
      return `at least ${String(issue.minimum)}${UNIT[issue.origin ?? ''] ?? ''}`;
    case 'too_big':
      return `at most ${String(issue.maximum)}${UNIT[issue.origin ?? ''] ?? ''}`;
    case undefined:
    default:
      return `it is not written as it must be${such}`;
  }
}

const UNIT: Readonly<Record<string, string>> = { string: ' letters', array: ' of them' };

function exampleOf(path: readonly PropertyKey[]): string | undefined {
  const place = (parts: readonly PropertyKey[]): string =>
    fieldPath(parts.map((part) => (typeof part === 'number' ? 0 : part))).replaceAll('[0]', '[]');
  return EXAMPLES[place(path)] ?? EXAMPLES[`${place(path.slice(0, -1))}.*`];
}

/** @param names what there is, as schemas/fields.ts tells it */
function unknownField(key: string, names: string): string {
  const near = names.split(', ').find((name) => isNear(key, name));
  const meant = near === undefined ? '' : `; did you mean ${near}?`;
  return `there is no such field${meant === '' ? ';' : meant} there are ${names}`;
}
