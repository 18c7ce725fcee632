/** What becomes of an environment when its delete comes to nothing. */
import type { EnvironmentState, Identities, OperationKind, OperationState } from '#protocol';
import type { Tx } from '../catalog.ts';

const SETTLED_STATES: readonly (EnvironmentState | undefined)[] = ['ready', 'degraded', 'suspended', 'failed'];

/** How it was created decides what there is; whatever else is open decides its state itself. */
const CREATED = /* sql */ `
  select o.kind, o.state, v.identities,
         exists (select 1 from operations x where x.environment_id = v.id and x.kind <> 'environment.delete'
                    and x.state in ('queued', 'running', 'blocked')) as open
    from environments v
    left join lateral (
      select kind, state from operations where environment_id = v.id and kind = 'environment.create'
       order by created_at desc, id desc limit 1) o on true
   where v.id = $1`;

interface Created {
  readonly kind: OperationKind | null;
  readonly state: OperationState;
  readonly identities: Identities;
  readonly open: boolean;
}

/**
 * The state of an environment whose delete ended before it did anything; undefined when what still runs decides.
 * A change that had been told to stop for the delete does still stop, but now clears up behind itself.
 */
export async function withoutDelete(
  tx: Tx,
  environmentId: string,
  previous: EnvironmentState | undefined,
): Promise<EnvironmentState | undefined> {
  await tx.query(
    /* sql */ `update operations set superseded = false where environment_id = $1 and state in ('queued', 'running', 'blocked')`,
    [environmentId],
  );
  const [created] = await tx.query<Created>(CREATED, [environmentId]);
  if (created?.open === true) return undefined;
  if (created === undefined || created.kind === null) return previous ?? 'degraded';
  switch (created.state) {
    case 'queued':
    case 'running':
    case 'blocked':
      return undefined;
    case 'succeeded':
      return SETTLED_STATES.includes(previous) ? previous : 'ready';
    case 'failed':
      return SETTLED_STATES.includes(previous) ? previous : 'failed';
    case 'cancelled':
      // It left to the delete what it had made; without anything made there is nothing left.
      return Object.keys(created.identities).length === 0 ? 'deleted' : 'degraded';
  }
}
