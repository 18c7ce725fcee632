/**
 * Takes the engine's container out of an environment's network. A network that was removed by hand while the engine rested
 * still stands in the container's settings, and would keep it from starting: that goes too.
 */
import type { Act } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import { foreign, lookAtMembership } from '../engine-membership.ts';
import { removeUntilAbsent } from '../remove-until-absent.ts';

export const act: Act<'leave-network'> = (context, spec) =>
  withDaemon(context, 'leave-network', async (daemon, time) => {
    let found = await lookAtMembership(daemon, spec);
    return (
      foreign(context, spec, found) ??
      removeUntilAbsent(
        time,
        async () => {
          found = await lookAtMembership(daemon, spec);
          return found.said !== undefined || found.endpoint !== 'none';
        },
        () =>
          // Of a network that is gone the daemon goes by the name.
          daemon.disconnect(
            found.network === undefined ? (found.said?.networkName ?? spec.networkId) : spec.networkId,
            spec.engineContainerId,
          ),
      )
    );
  });
