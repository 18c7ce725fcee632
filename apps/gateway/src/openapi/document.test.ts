import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CatalogLink, catalogSource } from '../catalog-link.ts';
import { createGateway, type Gateway } from '../gateway.ts';

const FILE = new URL('../../../../docs/generated/openapi.json', import.meta.url);
const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

interface Operation {
  readonly operationId: string;
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
}
interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

let gateway: Gateway;
let text: string;
let document: Document;
beforeAll(async () => {
  // Never connected: the document needs the routes only.
  const source = catalogSource('postgres://nobody@127.0.0.1:1/nothing');
  gateway = await createGateway({
    source,
    link: new CatalogLink(source, QUIET),
    logger: QUIET,
    sealingKey: () => Buffer.alloc(32),
    caFile: '/ca.pem',
    brokerUrl: 'amqp://127.0.0.1:1',
  });
  await gateway.app.init();
  text = `${JSON.stringify(gateway.document(), null, 2)}\n`;
  document = JSON.parse(text) as Document;
});
afterAll(async () => gateway.app.close());

function operations(): readonly (readonly [string, Operation])[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => [`${method} ${path}`, operation] as const),
  );
}

test('docs/generated/openapi.json is what the gateway serves; if not, store GET /openapi.json there, indented by two', () => {
  expect(JSON.parse(readFileSync(FILE, 'utf8'))).toEqual(document);
});

test('it is OpenAPI 3.1, and every reference leads somewhere', () => {
  expect(document.openapi).toBe('3.1.0');
  const references = [...text.matchAll(/"\$ref": "([^"]+)"/g)].map(([, reference]) => reference);
  expect(references.length).toBeGreaterThan(100);
  for (const reference of references) {
    const name = /^#\/components\/schemas\/(\w+)$/.exec(reference ?? '')?.[1];
    expect([reference, Object.keys(document.components.schemas)]).toEqual([reference, expect.arrayContaining([name])]);
  }
  for (const schema of Object.values(document.components.schemas)) expect(schema).not.toHaveProperty('$ref');
});

test('every route with a key says how it refuses, each refusal as a problem document', () => {
  for (const [route, operation] of operations()) {
    const open = operation.security !== undefined;
    for (const status of open ? [] : ['401', '403', '500', '503'])
      expect([route, Object.keys(operation.responses)]).toEqual([route, expect.arrayContaining([status])]);
    for (const [status, response] of Object.entries(operation.responses))
      if (Number(status) >= 400) expect(Object.keys(response.content ?? {})).toEqual(['application/problem+json']);
  }
});

test('operation ids are unique, and answers of success say what they hold', () => {
  const all = operations();
  expect(new Set(all.map(([, { operationId }]) => operationId)).size).toBe(all.length);
  for (const [route, { responses, security }] of all) {
    if (security !== undefined) continue;
    const success = Object.entries(responses).find(([status]) => status.startsWith('2'));
    expect([route, success?.[1].content]).toEqual([route, expect.any(Object)]);
  }
});

test('what the API promises is there', () => {
  expect(Object.keys(document.paths).sort()).toEqual([
    '/health/live',
    '/health/ready',
    '/metrics',
    '/v1/admin/cases',
    '/v1/admin/cases/{id}',
    '/v1/admin/engines',
    '/v1/admin/engines/{id}',
    '/v1/admin/registries',
    '/v1/admin/registries/{server}',
    '/v1/environments/{id}',
    '/v1/environments/{id}/credentials',
    '/v1/environments/{id}/services/{name}/logs',
    '/v1/operations',
    '/v1/operations/{id}',
    '/v1/operations/{id}/cancel',
    '/v1/operations/{id}/events',
    '/v1/projects',
    '/v1/projects/{project}',
    '/v1/projects/{project}/environments',
  ]);
});
