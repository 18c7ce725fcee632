/** Puts the environment on its network profiles: one GRANT, no file, no reload (DESIGN §6). */
import { profileRole, quoteIdentifier } from '#kernel';
import { guardedBatch } from '#fencing';
import type { Act } from '../contract.ts';
import { guardOf } from '../guard.ts';

export const act: Act<'rules'> = (context, { environmentId, names, profiles }) =>
  guardedBatch(guardOf(context, environmentId), 'rules', async (client) => {
    const roles = profiles.map((profile) => quoteIdentifier(profileRole(profile))).join(', ');
    await client.query(`grant ${roles} to ${quoteIdentifier(names.door)}`);
    return { profiles: [...profiles] };
  });
