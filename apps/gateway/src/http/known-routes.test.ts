import { expect, test } from '@jest/globals';
import { KnownRoutes } from './known-routes.ts';

const routes = new KnownRoutes();
routes.add('GET', '/v1/environments/:id');
routes.add('DELETE', '/v1/environments/:id');
routes.add('GET', '/v1/projects');

test.each([
  ['/v1/environments/x', ['DELETE', 'GET']],
  ['/v1/environments/', []],
  ['/v1/environments', []],
  ['/v1/environments/x/y', []],
  ['/v1/projects', ['GET']],
  ['/', []],
])('%s has the methods %j', (path, methods) => {
  expect(routes.methodsOf(path)).toEqual(methods);
});
