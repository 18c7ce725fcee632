import type { Guard } from '#fencing';
import type { ActContext } from './contract.ts';

/** The guard of an effect on an engine: token, engine identity and the lock of what it is about. */
export function guardOf(context: ActContext, subjectId: string): Guard {
  const { installation, engine, connections, inHand, deadlineMs } = context;
  return {
    installation,
    engine,
    connections,
    token: inHand.token,
    effectId: inHand.effectId,
    attempt: inHand.attempt,
    claimNumber: inHand.claimNumber,
    resource: inHand.resource,
    subjectId,
    deadlineMs,
  };
}
