import { z } from 'zod';
import { utf8Bytes } from '#kernel';
import { onlyFields } from './fields.ts';
import { registryFault } from './image-reference.ts';
import { storable, Timestamp } from './text.ts';

const USERNAME_MAX = 255;
/** Some registries take a whole key file for a password. */
const PASSWORD_MAX_BYTES = 16 * 1024;

const Server = z
  .string()
  .superRefine((server, context) => {
    const fault = registryFault(server);
    if (fault !== undefined) context.addIssue({ code: 'custom', message: fault, params: { code: 'registry' } });
  })
  .meta({ description: 'As images name it', examples: ['registry.example.com:5000', 'docker.io'] });

export const RegistryToSetSchema = onlyFields({
  server: Server,
  username: z.string().min(1).max(USERNAME_MAX).refine(storable, 'NUL and unpaired surrogates are not allowed'),
  password: z
    .string()
    .min(1)
    .refine(storable, 'NUL and unpaired surrogates are not allowed')
    .refine((password) => utf8Bytes(password) <= PASSWORD_MAX_BYTES, `at most ${PASSWORD_MAX_BYTES} bytes in UTF-8`)
    .meta({ description: 'Kept under encryption, and never shown again' }),
}).meta({ id: 'RegistryToSet' });
export type RegistryToSet = z.infer<typeof RegistryToSetSchema>;

export const RegistrySchema = z
  .object({ server: z.string(), username: z.string(), createdAt: Timestamp })
  .meta({ id: 'Registry' });
export type RegistryView = z.infer<typeof RegistrySchema>;

export const RegistryPageSchema = z
  .object({ items: z.array(RegistrySchema), nextCursor: z.string().nullable() })
  .meta({ id: 'RegistryPage' });
