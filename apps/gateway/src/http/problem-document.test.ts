import { expect, test } from '@jest/globals';
import { CatalogFateUnknown, CatalogUnavailable } from '#catalog';
import { Problem } from '#kernel';
import { problemDocument, RouteNotBuilt, toProblem } from './problem-document.ts';

test('a problem becomes its document, with its members', () => {
  const problem = new Problem('environment_busy', 'being deleted', { members: { operationId: 'o' } });
  expect(problemDocument(problem)).toEqual({
    type: 'urn:surefoot:problem:environment_busy',
    title: expect.any(String),
    status: 409,
    code: 'environment_busy',
    detail: 'being deleted',
    errors: [],
    operationId: 'o',
  });
});

test('a route that is not built has the status for routes', () => {
  expect(problemDocument(new RouteNotBuilt('GET /v1/admin/keys'))).toMatchObject({
    status: 501,
    code: 'not_supported',
  });
});

test.each([new CatalogUnavailable('x'), new CatalogFateUnknown('1')])(
  '%s is a 503 that may be tried again',
  (error) => {
    expect(problemDocument(toProblem(error))).toMatchObject({ status: 503, code: 'catalog_unavailable' });
  },
);

test.each([
  ['FST_ERR_CTP_BODY_TOO_LARGE', 413],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 415],
  ['FST_ERR_BAD_URL', 400],
])('the framework’s %s, wrapped or not, is a %i', (code, status) => {
  const error = Object.assign(new Error('x'), { code });
  expect(problemDocument(toProblem(error)).status).toBe(status);
  expect(problemDocument(toProblem(new Error('wrapped', { cause: error }))).status).toBe(status);
});

test('what nobody foresaw tells nothing of itself', () => {
  const document = problemDocument(toProblem(new Error('password hunter2')));
  expect(document).toMatchObject({ status: 500, code: 'internal' });
  expect(JSON.stringify(document)).not.toContain('hunter2');
});

test('an error that is its own cause comes to an end', () => {
  const error = new Error('round');
  error.cause = error;
  expect(toProblem(error).code).toBe('internal');
});
