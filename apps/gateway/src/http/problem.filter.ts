import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '#kernel';
import { PROBLEM_MEDIA_TYPE, problemDocument, toProblem } from './problem-document.ts';

const RETRY_AFTER_SECONDS = '2';

/** Whatever goes wrong in a request ends here, and leaves as a problem document. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const reply = http.getResponse<FastifyReply>();
    const problem = toProblem(error);
    const document = problemDocument(problem);
    if (document.status >= 500 && problem.code !== 'not_supported') {
      const { method, routeOptions } = http.getRequest<FastifyRequest>();
      this.#logger.error('request failed', { code: problem.code, method, route: routeOptions.url, error });
    }
    if (problem.code === 'unauthenticated') void reply.header('www-authenticate', 'Bearer');
    if (problem.code === 'catalog_unavailable') void reply.header('retry-after', RETRY_AFTER_SECONDS);
    void reply.code(document.status).type(PROBLEM_MEDIA_TYPE).send(JSON.stringify(document));
  }
}
