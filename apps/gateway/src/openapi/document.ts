/** The OpenAPI document (DESIGN §9): made from the routes and the schemas that check them. */
import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import { z } from 'zod';

const DESCRIPTION = `PostgreSQL environments that are made exactly once. Changes answer 202 with an operation, which can be polled or followed.
Every refusal is a problem document (RFC 9457) with a stable \`code\`.`;

export function openApiDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setTitle('Surefoot')
    .setDescription(DESCRIPTION)
    .setVersion('1')
    .setOpenAPIVersion('3.1.0')
    .addBearerAuth({ type: 'http', scheme: 'bearer', bearerFormat: 'API key' }, 'key')
    .addSecurityRequirements('key')
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    standardSchemaConverter: convert,
    operationIdFactory: (_controller, method) => method,
    autoTagControllers: false,
  });
  return problemsAsProblems(document);
}

interface JsonSchema {
  readonly $defs?: Readonly<Record<string, unknown>>;
  readonly $schema?: unknown;
  readonly id?: unknown;
  readonly [keyword: string]: unknown;
}

/** zod's JSON Schema, with what has a name of its own moved to the components. */
function convert(
  schema: unknown,
  { schemaType }: { readonly schemaType: 'input' | 'output' },
): { schema: unknown; components: Record<string, unknown> } | undefined {
  if (!(schema instanceof z.ZodType)) return undefined;
  const {
    $defs = {},
    $schema: _dialect,
    ...root
  } = z.toJSONSchema(schema, {
    target: 'draft-2020-12',
    io: schemaType,
    unrepresentable: 'any',
    // An answer may get more fields in a later version; a client that refuses them would break by itself.
    override: ({ jsonSchema }) => {
      if (schemaType === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  }) as JsonSchema;
  return {
    schema: root,
    components: Object.fromEntries(Object.entries($defs).map(([name, definition]) => [name, withoutId(definition)])),
  };
}

/** `id` is zod's name for it, not a keyword of JSON Schema. */
function withoutId(definition: unknown): unknown {
  const { id: _name, ...rest } = definition as JsonSchema;
  return rest;
}

/** A refusal has its own media type, which the decorators cannot say beside that of the answer. */
function problemsAsProblems(document: OpenAPIObject): OpenAPIObject {
  for (const path of Object.values(document.paths))
    for (const operation of Object.values(path) as {
      responses?: Record<string, { content?: Record<string, unknown> }>;
    }[])
      for (const [status, response] of Object.entries(operation.responses ?? {}))
        if (Number(status) >= 400 && response.content !== undefined)
          response.content = { 'application/problem+json': Object.values(response.content)[0] };
  return document;
}
