import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { Reflector } from '@nestjs/core';
import { Problem } from '#kernel';
import { type Role, roleIncludes } from '#protocol';
import type { ApiKeys } from './api-keys.ts';
import { type Authenticated, NEEDS } from './needs.ts';

/** Before every route: who asks, and whether the role is enough. What of it is visible, the statements decide. */
export class AccessGuard implements CanActivate {
  readonly #keys: ApiKeys;
  readonly #reflector: Reflector;

  constructor(keys: ApiKeys, reflector: Reflector) {
    this.#keys = keys;
    this.#reflector = reflector;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const needed = this.#reflector.getAllAndOverride<Role | 'nobody' | undefined>(NEEDS, [
      context.getHandler(),
      context.getClass(),
    ]);
    if (needed === 'nobody') return true;
    const request = context.switchToHttp().getRequest<Authenticated>();
    const principal = await this.#keys.authenticate(request.headers.authorization);
    if (needed === undefined || !roleIncludes(principal.role, needed))
      throw new Problem(
        'forbidden',
        `the key ${principal.name} is a ${principal.role}; this needs ${needed ?? 'more'}`,
      );
    request.principal = principal;
    return true;
  }
}
