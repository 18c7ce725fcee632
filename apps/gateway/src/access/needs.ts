/** What a route asks of its caller. A route that says nothing is closed to everybody. */
import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { Role } from '#protocol';
import type { Principal } from './principal.ts';

export const NEEDS = 'surefoot:needs';

/** @param role the least that the key must have; `nobody`: no key at all is needed */
export function Needs(role: Role | 'nobody'): MethodDecorator & ClassDecorator {
  return SetMetadata(NEEDS, role);
}

export type Authenticated = FastifyRequest & { principal?: Principal };

/** The caller of a route that needs a key. */
export const Caller = createParamDecorator((_data: unknown, context: ExecutionContext): Principal => {
  const { principal } = context.switchToHttp().getRequest<Authenticated>();
  if (principal === undefined) throw new TypeError('a route with a caller says which role it needs');
  return principal;
});
