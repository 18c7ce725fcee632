/** Routes of DESIGN §9 that this version does not have yet. Each answers that, to those who have a key. */
import { Controller, Get, Patch, Post, Req } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Needs } from './access/needs.ts';
import { RouteNotBuilt } from './http/problem-document.ts';

const NOT_BUILT = {
  get: [
    'v1/admin/keys',
    'v1/admin/profiles',
    'v1/admin/webhooks',
    'v1/admin/hosts',
    'v1/admin/audit',
    'v1/admin/engines/:id/rules',
    'v1/admin/engines/:id/ca',
    'v1/admin/drift',
    'v1/admin/orphans',
    'v1/admin/reconciler',
    'graphql',
  ],
  post: [
    ...['rotate', 'clone', 'suspend', 'resume', 'backup', 'restore', 'retry'].map(
      (verb) => `v1/environments/:id/${verb}`,
    ),
    'v1/admin/keys',
    'v1/admin/profiles',
    'v1/admin/engines',
    'v1/admin/webhooks',
    'v1/admin/events/replay',
    ...['migrate', 'drain', 'backup', 'rules/adopt', 'rules/restore'].map((verb) => `v1/admin/engines/:id/${verb}`),
    'v1/admin/cases/:id/decisions',
    'v1/admin/reconciler/passes/:pass',
    'graphql',
  ],
  patch: ['v1/environments/:id'],
};

@ApiExcludeController()
@Needs('viewer')
@Controller()
export class NotBuiltController {
  @Get(NOT_BUILT.get)
  read(@Req() request: FastifyRequest): never {
    return refuse(request);
  }

  @Post(NOT_BUILT.post)
  change(@Req() request: FastifyRequest): never {
    return refuse(request);
  }

  @Patch(NOT_BUILT.patch)
  amend(@Req() request: FastifyRequest): never {
    return refuse(request);
  }
}

function refuse(request: FastifyRequest): never {
  throw new RouteNotBuilt(`${request.method} ${request.routeOptions.url ?? ''}`);
}
