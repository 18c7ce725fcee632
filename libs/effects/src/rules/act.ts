/** Puts the environment on its network profile: one GRANT, no file, no reload (DESIGN §6). */
import { profileRole, quoteIdentifier } from '#kernel';
import { guardedBatch } from '#fencing';
import type { Act } from '../contract.ts';
import { guardOf } from '../guard.ts';

export const act: Act<'rules'> = (context, spec) =>
  guardedBatch(guardOf(context, spec.environmentId), 'rules', async (client) => {
    const role = profileRole(spec.profile);
    await client.query(`grant ${quoteIdentifier(role)} to ${quoteIdentifier(spec.names.door)}`);
    return { profile: spec.profile };
  });
