/** What a schema found wrong, as field errors: all of them at once, each with a stable code and a sentence. */
import { type FieldFault, Problem } from '#kernel';

/** An issue of the Standard Schema, with what zod's hold beyond. */
interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  readonly code?: string | undefined;
  readonly keys?: readonly string[];
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
    : new Problem('invalid_request', `see "errors"${named}`, { errors });
}

export function fieldFault(field: string, code: string, message: string): Problem {
  return new Problem('invalid_request', `see "errors": ${field}`, { errors: [{ field, code, message }] });
}

function toFaults(issue: Issue): readonly FieldFault[] {
  const path = (issue.path ?? []).map((part) => (typeof part === 'object' ? part.key : part));
  if (issue.code === 'unrecognized_keys')
    return (issue.keys ?? []).map((key) => ({
      field: fieldPath([...path, key]),
      ...(LATER_FIELDS.has(key)
        ? { code: 'not_supported', message: 'this field is not built yet' }
        : { code: 'unknown_field', message: 'there is no such field' }),
    }));
  const missing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  const code = issue.params?.code ?? (missing ? 'required' : (issue.code ?? 'invalid'));
  const ofKey = issue.code === 'invalid_key' ? issue.issues?.[0]?.message : undefined;
  const message = missing && path.length > 0 ? 'this field is needed' : (ofKey ?? issue.message);
  return [{ field: fieldPath(path), code, message }];
}

/** `services[0].name`; empty for the whole body. */
function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}
