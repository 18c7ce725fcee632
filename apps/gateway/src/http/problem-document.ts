/** Problem documents (RFC 9457): the one shape in which this API refuses (DESIGN §9). */
import { CatalogFateUnknown, CatalogUnavailable } from '#catalog';
import { type FieldFault, Problem, PROBLEMS, type ProblemCode } from '#kernel';

export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ProblemCode;
  readonly detail: string;
  readonly errors: readonly FieldFault[];
  readonly [member: string]: unknown;
}

export const PROBLEM_MEDIA_TYPE = 'application/problem+json; charset=utf-8';

/** A route of DESIGN §9 that this version does not have yet: the same code as for a field, with the status for a route. */
export class RouteNotBuilt extends Problem {
  readonly status = 501;

  constructor(route: string) {
    super('not_supported', `${route} is not built yet`);
  }
}

export function problemDocument(problem: Problem): ProblemDocument {
  const { status, title } = PROBLEMS[problem.code];
  return {
    type: `urn:surefoot:problem:${problem.code}`,
    title,
    status: problem instanceof RouteNotBuilt ? problem.status : status,
    code: problem.code,
    detail: problem.detail,
    errors: problem.errors,
    ...problem.members,
  };
}

/** Fastify's own refusals, by its codes (Fastify manual, "Errors"). */
const FASTIFY_PROBLEMS: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
  FST_ERR_BAD_URL: 'invalid_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
};

/** What Nest itself refuses, by status: an address that it does not route. */
const NEST_PROBLEMS: Readonly<Record<number, ProblemCode>> = { 400: 'invalid_request', 404: 'not_found' };

const DETAILS: Partial<Record<ProblemCode, string>> = {
  body_too_large:
    'a body has at most 256 KiB, with the secrets of all its services: large files belong into the image or the database',
  unsupported_media_type: 'send the body as application/json',
  not_found: 'there is no such route',
  invalid_request: 'the request could not be read: check its address and its length',
};

/** Nest wraps what Fastify throws, once; a cause can also lead back to itself. */
const CAUSES_MAX = 4;

/**
 * The problem that an error is told as. Only a Problem of our own tells its text; anything unforeseen is `internal`, and
 * its text goes to the log.
 */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof CatalogUnavailable || error instanceof CatalogFateUnknown)
    return new Problem(
      'catalog_unavailable',
      'the catalog does not answer now: try again, with the same Idempotency-Key if it is to be done once',
      { cause: error },
    );
  let cause = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1, cause = cause.cause) {
    if (cause instanceof Problem) return cause;
    const { code: raised = '', status = 0 } = cause as { code?: string; status?: number };
    const code = FASTIFY_PROBLEMS[raised] ?? (cause.name.endsWith('Exception') ? NEST_PROBLEMS[status] : undefined);
    if (code !== undefined) return new Problem(code, DETAILS[code] ?? 'the request cannot be served', { cause: error });
  }
  return new Problem('internal', 'the gateway failed; its log says more', { cause: error });
}
