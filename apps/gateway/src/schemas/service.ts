/** Services of an environment (DESIGN §6): what may be asked for, and what is shown. */
import { z } from 'zod';
import type { ServiceState } from '#catalog';
import { SERVICE_DEFAULTS, utf8Bytes } from '#kernel';
import { ENGINE_ALIAS, SERVICE_FILES, SERVICE_FOLDER } from '#protocol';
import { onlyFields } from './fields.ts';
import { imageFault } from './image-reference.ts';
import { storable, Timestamp } from './text.ts';

const MEBIBYTE = 1024 ** 2;
const GIBIBYTE = 1024 ** 3;

const COMMAND_MAX = 64;
const ARGUMENT_MAX_BYTES = 4096;
const ENV_MAX = 100;
const ENV_VALUE_MAX_BYTES = 8 * 1024;
const SECRETS_MAX = 50;
const SECRET_MAX_BYTES = 64 * 1024;
const PORTS_MAX = 10;
/** Below it, Docker starts no container. */
const MEMORY_MIN_BYTES = 6 * MEBIBYTE;
const MEMORY_MAX_BYTES = 64 * GIBIBYTE;
const CPUS_MIN = 0.01;
const CPUS_MAX = 64;
const PIDS_MAX = 4096;
const DEADLINE_MAX_SECONDS = 540;

/** Names that mean something else inside an environment's network. */
const RESERVED_NAMES: readonly string[] = [ENGINE_ALIAS, 'localhost'];

/**
 * For a check of a whole that has faulty parts: zod leaves it out otherwise, and all faults are told at once. The parts may
 * be of any type then.
 */
export const OF_FAULTY_ITEMS = { when: ({ value }: { readonly value: unknown }): boolean => Array.isArray(value) };
const OF_FAULTY_FIELDS = {
  when: ({ value }: { readonly value: unknown }): boolean => typeof value === 'object' && value !== null,
};

const STORABLE = 'NUL and unpaired surrogates are not allowed';

function bounded(minBytes: number, maxBytes: number): z.ZodString {
  return z
    .string()
    .refine(storable, STORABLE)
    .refine((text) => {
      const bytes = utf8Bytes(text);
      return bytes >= minBytes && bytes <= maxBytes;
    }, `${minBytes} to ${maxBytes} bytes in UTF-8`);
}

const Name = z
  .string()
  .regex(
    /^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$/,
    'a name has 1 to 40 lower-case letters, digits and hyphens, begins with a letter and does not end with a hyphen',
  )
  .refine((name) => !RESERVED_NAMES.includes(name), `a service cannot be named ${RESERVED_NAMES.join(' or ')}`)
  .meta({
    description: 'Unique in its environment; other services of it reach this one under its name',
    examples: ['api'],
  });

const Image = z
  .string()
  .superRefine((image, context) => {
    const fault = imageFault(image);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault, params: { code: 'image' } });
  })
  .meta({ description: 'Pinned to what it is when the service is made', examples: ['postgrest/postgrest:v12.2.3'] });

const Env = z
  .record(
    z
      .string()
      .regex(
        /^[A-Za-z_][A-Za-z0-9_]{0,254}$/,
        'a variable’s name has letters, digits and underscores, and does not begin with a digit',
      ),
    bounded(0, ENV_VALUE_MAX_BYTES),
  )
  .refine((env) => Object.keys(env).length <= ENV_MAX, `at most ${ENV_MAX} variables`)
  .meta({ description: 'Not for secrets: whoever may inspect the container sees it' });

const Secrets = z
  .record(
    z
      .string()
      .regex(
        /^[A-Za-z_][A-Za-z0-9_.-]{0,127}$/,
        'the name of a file: letters, digits, underscores, dots and hyphens, beginning with a letter or underscore',
      )
      .refine(
        (name) => !SERVICE_FILES.includes(name),
        `every service finds ${SERVICE_FILES.join(' and ')} there already`,
      ),
    bounded(1, SECRET_MAX_BYTES),
  )
  .refine((secrets) => Object.keys(secrets).length <= SECRETS_MAX, `at most ${SECRETS_MAX} secrets`)
  .meta({ description: `Each a file in ${SERVICE_FOLDER}, for the container’s user alone; never shown again` });

const PORT = 'a port is a whole number from 1 to 65535';
const Port = z.int().min(1, PORT).max(65_535, PORT);

const DEADLINE = `from 1 to ${DEADLINE_MAX_SECONDS} seconds`;

const Health = onlyFields({
  http: onlyFields({
    port: Port,
    path: z
      .string()
      .regex(
        /^\/[\w.~!$&'()*+,;=:@%/?-]{0,1023}$/,
        'a path, with its query: a slash and at most 1023 of the characters that an address holds as they are',
      ),
  })
    .optional()
    .meta({ description: 'GET answers with a status from 200 to 399' }),
  tcp: onlyFields({ port: Port }).optional().meta({ description: 'The port takes connections' }),
  deadlineSeconds: z
    .int()
    .min(1, DEADLINE)
    .max(DEADLINE_MAX_SECONDS, DEADLINE)
    .default(SERVICE_DEFAULTS.deadlineSeconds),
})
  .refine(({ http, tcp }) => http === undefined || tcp === undefined, {
    error: 'http or tcp, not both',
    ...OF_FAULTY_FIELDS,
  })
  .meta({
    description:
      'When it is well. With neither http nor tcp the image’s own check counts; without one, that it keeps running',
  });

const MEMORY = 'bytes as a whole number, or text with k, m or g, such as "256m" or "1g"';

const Memory = z
  .union([z.int(), z.string().regex(/^[1-9]\d{0,11}[kmg]$/i, MEMORY)], { error: MEMORY })
  .transform((memory) => (typeof memory === 'number' ? memory : bytesOf(memory)))
  .refine((bytes) => bytes >= MEMORY_MIN_BYTES && bytes <= MEMORY_MAX_BYTES, 'memory is from 6m to 64g')
  .meta({ description: 'Bytes, or with k, m or g for powers of 1024', examples: ['256m'] });

function bytesOf(memory: string): number {
  const unit = { k: 1024, m: MEBIBYTE, g: GIBIBYTE }[memory.slice(-1).toLowerCase()] ?? 1;
  return Number(memory.slice(0, -1)) * unit;
}

const CPUS = `from ${CPUS_MIN} to ${CPUS_MAX} processors`;
const PIDS = `from 1 to ${PIDS_MAX} processes`;

const Limits = onlyFields({
  memory: Memory.prefault(SERVICE_DEFAULTS.memoryBytes),
  cpus: z.number().min(CPUS_MIN, CPUS).max(CPUS_MAX, CPUS).default(SERVICE_DEFAULTS.cpus),
  pids: z.int().min(1, PIDS).max(PIDS_MAX, PIDS).default(SERVICE_DEFAULTS.pids),
}).prefault({});

export const ServiceToCreateSchema = onlyFields({
  name: Name,
  image: Image,
  command: z
    .array(bounded(0, ARGUMENT_MAX_BYTES))
    .max(COMMAND_MAX, `at most ${COMMAND_MAX} words`)
    .default([])
    .meta({ description: 'In place of the image’s command; the image’s own when empty' }),
  env: Env.default({}),
  secrets: Secrets.default({}),
  ports: z
    .array(Port)
    .max(PORTS_MAX, `at most ${PORTS_MAX} ports`)
    .refine((ports) => new Set(ports).size === ports.length, {
      error: 'a port is named once',
      ...OF_FAULTY_ITEMS,
    })
    .default([])
    .meta({ description: 'Ports of the container that get a port of the host' }),
  health: Health.prefault({}),
  limits: Limits,
  readOnly: z.boolean().default(false).meta({ description: 'The container’s root file system cannot be written' }),
  user: z
    .string()
    .regex(
      /^[A-Za-z0-9_][\w.-]{0,31}(:[A-Za-z0-9_][\w.-]{0,31})?$/,
      'a user or user:group, by names or numbers, such as redis or 1000:1000',
    )
    .optional()
    .meta({
      description:
        'In place of the image’s. A container has no privileges: one that starts as root cannot become another',
      examples: ['redis', '1000:1000'],
    }),
}).meta({ id: 'ServiceToCreate' });
export type ServiceToCreateBody = z.infer<typeof ServiceToCreateSchema>;

/** `pending`: its container is not made yet; `removed`: it was, or never came to be. The rest is as the daemon says. */
const SERVICE_STATES = [
  'pending',
  'created',
  'running',
  'unhealthy',
  'paused',
  'restarting',
  'exited',
  'missing',
  'removed',
] as const satisfies readonly (ServiceState | 'pending' | 'removed')[];
export type ShownServiceState = (typeof SERVICE_STATES)[number];

const PublishedPortSchema = z.object({
  container: z.int(),
  address: z.string().meta({ description: 'Of the host' }),
  host: z.int().nullable().meta({ description: 'Port of the host; null until the container is made' }),
});

export const ServiceSchema = z
  .object({
    name: z.string(),
    image: z.string(),
    imageDigest: z
      .string()
      .nullable()
      .meta({ description: 'Id of the image that its container has; null without one' }),
    state: z.enum(SERVICE_STATES),
    ports: z.array(PublishedPortSchema),
    env: z.array(z.string()).meta({ description: 'Names of its variables' }),
    secrets: z.array(z.string()).meta({ description: `Names of its files in ${SERVICE_FOLDER}` }),
    health: z.object({
      http: z.object({ port: z.int(), path: z.string() }).optional(),
      tcp: z.object({ port: z.int() }).optional(),
      deadlineSeconds: z.int(),
    }),
    limits: z.object({ memory: z.int().meta({ description: 'Bytes' }), cpus: z.number(), pids: z.int() }),
    readOnly: z.boolean(),
    user: z.string().nullable().meta({ description: 'Null: the image’s own' }),
    startedAt: Timestamp.optional(),
    restarts: z.int().optional().meta({ description: 'How often the daemon has started it again' }),
    exitCode: z.int().optional(),
    outOfMemory: z.boolean().optional().meta({ description: 'It was ended at its memory limit' }),
    observedAt: Timestamp.nullable().meta({ description: 'When this state was seen; null: not yet' }),
  })
  .meta({ id: 'Service' });
export type ServiceView = z.infer<typeof ServiceSchema>;
