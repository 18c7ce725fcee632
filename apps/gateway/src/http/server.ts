/** The Fastify instance below Nest: limits, bodies, headers, unknown routes, and one measurement per request. */
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem, REQUEST_BODY_MAX_BYTES } from '#kernel';
import type { GatewayMetrics } from '../health/metrics.ts';
import { parseJsonBody } from './json-body.ts';
import { PROBLEM_MEDIA_TYPE, problemDocument, toProblem } from './problem-document.ts';
import { KnownRoutes } from './known-routes.ts';

/** Time in which a request must have arrived as a whole; a stream's answer may take longer. */
const REQUEST_TIMEOUT_MS = 30_000;
/** A project name of 63 characters, each percent-encoded. */
const PARAMETER_MAX_LENGTH = 256;

/** An API answers with data only: nothing of it may be framed, sniffed, cached or referred to. */
const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

export function fastifyAdapter(metrics: GatewayMetrics): FastifyAdapter {
  const adapter = new FastifyAdapter({
    bodyLimit: REQUEST_BODY_MAX_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    logger: false,
    routerOptions: { maxParamLength: PARAMETER_MAX_LENGTH },
    frameworkErrors: (error: Error, _request: FastifyRequest, reply: FastifyReply) => sendProblem(reply, error),
    // No middleware in the manner of Express here, so no engine for it in the way of each request.
    skipMiddie: true,
  });
  const server = adapter.getInstance<FastifyInstance>();
  readJsonOnly(server);
  const routes = new KnownRoutes();
  server.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) routes.add(method, route.url);
  });
  server.addHook('onRequest', (request, reply, done) => {
    void reply.headers(SECURITY_HEADERS);
    // Here, since Nest's own handler for what is not routed knows neither the routes nor their methods.
    if (request.is404) sendProblem(reply, unrouted(request, reply, routes));
    else done();
  });
  server.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none';
    metrics.request(request.method, route, reply.statusCode, reply.elapsedTime);
    done();
  });
  return adapter;
}

function readJsonOnly(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, parseJsonBody(body as Buffer));
    } catch (error) {
      done(error as Error);
    }
  });
}

function unrouted(request: FastifyRequest, reply: FastifyReply, routes: KnownRoutes): Problem {
  const path = request.url.split('?')[0] ?? '';
  const methods = routes.methodsOf(path);
  if (methods.length === 0) return new Problem('not_found', 'there is no such route');
  void reply.header('allow', methods.join(', '));
  return new Problem('method_not_allowed', `here are ${methods.join(', ')}`);
}

function sendProblem(reply: FastifyReply, error: unknown): void {
  const document = problemDocument(toProblem(error));
  void reply.headers(SECURITY_HEADERS).code(document.status).type(PROBLEM_MEDIA_TYPE).send(JSON.stringify(document));
}
