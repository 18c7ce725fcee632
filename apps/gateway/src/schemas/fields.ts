import { z } from 'zod';

/** An object with these fields and no others; of another field it is told which there are (http/field-faults.ts reads them). */
export function onlyFields<const T extends z.ZodRawShape>(shape: T): ReturnType<typeof z.strictObject<T>> {
  const names = Object.keys(shape).join(', ');
  return z.strictObject(shape, { error: ({ code }) => (code === 'unrecognized_keys' ? names : undefined) });
}
