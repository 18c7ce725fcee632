import { z } from 'zod';
import {
  CONNECTION_LIMIT_DEFAULT,
  CONNECTION_LIMIT_MAX,
  ENVIRONMENT_NAME_MAX_BYTES,
  environmentNameFault,
  TIERS,
} from '#kernel';
import { ENVIRONMENT_STATES, SERVICES_MAX } from '#protocol';
import { PAGE_FIELDS } from '../http/page.ts';
import { onlyFields } from './fields.ts';
import { ReasonSchema } from './operation.ts';
import { OF_FAULTY_ITEMS, ServiceSchema, ServiceToCreateSchema } from './service.ts';
import { Id, storable, Timestamp } from './text.ts';

const PROFILE = 'local';
const LABELS_MAX = 32;
const LABEL_NAME_MAX = 63;
const LABEL_VALUE_MAX = 255;
const EXTENSIONS_MAX = 64;

/** A field of DESIGN §9 that this version can only take empty: anything in it would be ignored, so it is refused. */
function notBuilt<T extends z.ZodType>(schema: T, isEmpty: (value: z.infer<T>) => boolean): T {
  return schema.superRefine((value, context) => {
    if (!isEmpty(value))
      context.addIssue({ code: 'custom', message: 'this field is not built yet', params: { code: 'not_supported' } });
  });
}

const Name = z
  .string()
  .superRefine((name, context) => {
    const fault = environmentNameFault(name);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault, params: { code: 'name' } });
  })
  .meta({
    description: `At most ${ENVIRONMENT_NAME_MAX_BYTES} bytes in UTF-8; no control characters, no slash, not beginning with "pg_". Unique in its project`,
    examples: ['pr-1234'],
  });

const Extension = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$/, 'the name of an extension, such as pgcrypto or uuid-ossp')
  .meta({ examples: ['pgcrypto'] });

const Labels = z
  .record(
    z.string().min(1).max(LABEL_NAME_MAX).refine(storable, 'NUL and unpaired surrogates are not allowed'),
    z.string().max(LABEL_VALUE_MAX).refine(storable, 'NUL and unpaired surrogates are not allowed'),
  )
  .refine((labels) => Object.keys(labels).length <= LABELS_MAX, `at most ${LABELS_MAX} labels`);

const CONNECTIONS = `from 1 to ${CONNECTION_LIMIT_MAX} connections`;

const Services = z
  .array(ServiceToCreateSchema)
  .max(SERVICES_MAX, `at most ${SERVICES_MAX} services in an environment`)
  .superRefine((services: readonly unknown[], context) => {
    const names = services.map((service) => (service as { readonly name?: unknown } | null)?.name);
    names.forEach((name, index) => {
      if (typeof name === 'string' && names.indexOf(name) < index)
        context.addIssue({
          code: 'custom',
          path: [index, 'name'],
          message: 'another service of this environment has this name',
          params: { code: 'duplicate' },
        });
    });
  }, OF_FAULTY_ITEMS)
  .meta({ description: `Containers beside the database, at most ${SERVICES_MAX}` });

export const EnvironmentToCreateSchema = onlyFields({
  name: Name,
  extensions: z
    .array(Extension)
    .max(EXTENSIONS_MAX, `at most ${EXTENSIONS_MAX} extensions`)
    .refine((names) => new Set(names).size === names.length, 'an extension is named once')
    .default([]),
  profile: z.literal(PROFILE, `there is one network profile, "${PROFILE}"`).default(PROFILE),
  connectionLimit: z.int().min(1, CONNECTIONS).max(CONNECTION_LIMIT_MAX, CONNECTIONS).default(CONNECTION_LIMIT_DEFAULT),
  labels: Labels.default({}),
  cidrs: notBuilt(z.array(z.string()), (cidrs) => cidrs.length === 0).default([]),
  protected: notBuilt(z.boolean(), (value) => !value).default(false),
  services: Services.prefault([]),
}).meta({ id: 'EnvironmentToCreate' });
export type EnvironmentToCreate = z.infer<typeof EnvironmentToCreateSchema>;

const Users = z.object({ migrate: z.string(), app: z.string(), readonly: z.string() });

export const EnvironmentSchema = z
  .object({
    id: Id,
    project: z.string(),
    name: z.string(),
    state: z.enum(ENVIRONMENT_STATES),
    engine: z.string(),
    host: z.string(),
    profile: z.string(),
    extensions: z.array(z.string()),
    connectionLimit: z.int(),
    labels: z.record(z.string(), z.string()),
    reason: ReasonSchema.nullable().meta({ description: 'Why it is degraded' }),
    services: z.array(ServiceSchema),
    connection: z.object({
      host: z.string(),
      port: z.int(),
      database: z.string(),
      users: Users,
      sslmode: z.literal('verify-full'),
    }),
    createdAt: Timestamp,
    lastObservedAt: Timestamp.nullable(),
  })
  .meta({ id: 'Environment' });
export type EnvironmentView = z.infer<typeof EnvironmentSchema>;

export const EnvironmentPageSchema = z
  .object({ items: z.array(EnvironmentSchema), nextCursor: z.string().nullable() })
  .meta({ id: 'EnvironmentPage' });

export const EnvironmentQuerySchema = onlyFields({
  ...PAGE_FIELDS,
  name: z.string().refine(storable, 'not a name').optional().meta({ description: 'Only the environment of this name' }),
  state: z.enum(ENVIRONMENT_STATES).optional().meta({ description: 'Only those in this state' }),
});
export type EnvironmentQuery = z.infer<typeof EnvironmentQuerySchema>;

export const CredentialsSchema = z
  .object({
    logins: z.array(
      z.object({
        tier: z.enum(TIERS),
        user: z.string(),
        password: z.string(),
        uri: z.string().meta({ description: 'Works as it is, from the host' }),
      }),
    ),
  })
  .meta({ id: 'Credentials' });
export type CredentialsView = z.infer<typeof CredentialsSchema>;
