/** How a route's answers are documented. Every refusal that a route can give is named at the route. */
import { applyDecorators } from '@nestjs/common';
import { ApiHeader, ApiResponse } from '@nestjs/swagger';
import type { z } from 'zod';
import { PROBLEMS, type ProblemCode } from '#kernel';
import { ProblemSchema } from '../schemas/problem.ts';

/** Refusals that any route with a key can give. */
const EVERYWHERE: readonly ProblemCode[] = ['unauthenticated', 'forbidden', 'internal', 'catalog_unavailable'];
/** Refusals of a route that reads a body. */
export const BODY_PROBLEMS: readonly ProblemCode[] = [
  'invalid_request',
  'invalid_json',
  'not_supported',
  'body_too_large',
  'unsupported_media_type',
];

const LOCATION = { Location: { description: 'Where it can be looked at', schema: { type: 'string' as const } } };

export function Answers(
  status: number,
  description: string,
  schema: z.ZodType | undefined,
  problems: readonly ProblemCode[] = [],
): MethodDecorator {
  return applyDecorators(
    ApiResponse({
      status,
      description,
      ...(schema === undefined ? {} : { standardSchema: schema }),
      ...(status === 201 || status === 202 ? { headers: LOCATION } : {}),
    }),
    Refuses([...EVERYWHERE, ...problems]),
  );
}

/** One response per status, since OpenAPI has one; its description names the codes. */
export function Refuses(codes: readonly ProblemCode[]): MethodDecorator {
  const byStatus = Map.groupBy(codes, (code) => PROBLEMS[code].status);
  return applyDecorators(
    ...[...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, here]) =>
        ApiResponse({
          status,
          description: here.map((code) => `\`${code}\`: ${PROBLEMS[code].title}`).join('; '),
          standardSchema: ProblemSchema,
        }),
      ),
  );
}

export function TakesIdempotencyKey(): MethodDecorator {
  return ApiHeader({
    name: 'Idempotency-Key',
    required: false,
    description:
      'The same key with the same request gives the same answer; with another one, 409 `idempotency_mismatch`',
  });
}
