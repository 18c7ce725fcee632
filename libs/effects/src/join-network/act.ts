/**
 * Connects the engine's container, as it runs, to an environment's network, where it is called `db`. Its other connections
 * stay: a closed network never becomes the one that a container's default route or published port goes through.
 */
import type { Daemon } from '#docker';
import { type DaemonError, isDaemonError } from '#docker';
import type { EffectSpecs } from '#protocol';
import { ENGINE_ALIAS } from '#protocol';
import type { Act, ActResult } from '../contract.ts';
import { applied, refused, unknown } from '../contract.ts';
import { withDaemon } from '../daemon-act.ts';
import type { Membership } from '../engine-membership.ts';
import { foreign, lookAtMembership } from '../engine-membership.ts';

/** An unclean stop of the daemon can leave an endpoint of the container that the container knows nothing of (B071). */
const LEFT_BEHIND = /endpoint with name .* already exists in network/i;

export const act: Act<'join-network'> = (context, spec) =>
  withDaemon(context, 'join-network', async (daemon, time) => {
    const { networkId, engineContainerId } = spec;
    let before = await lookAtMembership(daemon, spec);
    // Between two starts it can be connected to nothing; a restart takes as long as the server takes.
    while (before.container?.State.Restarting === true && (await time.pause()))
      before = await lookAtMembership(daemon, spec);
    const { container, network } = before;
    if (network === undefined) return refused('network_missing', `there is no network ${networkId}`);
    if (container?.Id !== engineContainerId)
      return refused('engine_missing', `there is no container ${engineContainerId}`);
    const refusal = foreign(context, spec, before);
    if (refusal !== undefined) return refusal;
    if (isJoined(before)) return joined(before);
    if (before.said !== undefined || before.endpoint !== 'none') await disconnect(daemon, spec);
    let failure = await connect(daemon, spec);
    if (failure !== undefined && LEFT_BEHIND.test(failure.message)) {
      await disconnect(daemon, spec);
      failure = await connect(daemon, spec);
    }
    const after = await lookAtMembership(daemon, spec);
    return isJoined(after) ? joined(after) : notJoined(daemon, spec, after, failure);
  });

function isJoined({ container, said, endpoint }: Membership): boolean {
  if (said?.aliases.includes(ENGINE_ALIAS) !== true) return false;
  // One that rests is connected when it starts.
  return container?.State.Running !== true || (endpoint === 'its own' && said.address !== '');
}

function joined({ said }: Membership): ActResult {
  return applied({ address: said?.address === '' ? null : (said?.address ?? null) });
}

/** What came of it half goes, so that the network can. */
async function notJoined(
  daemon: Daemon,
  spec: EffectSpecs['join-network'],
  { said, endpoint }: Membership,
  failure: DaemonError | undefined,
): Promise<ActResult> {
  const why = failure?.message ?? 'the daemon says that it did, and does not show it';
  const what = `the engine did not join network ${spec.networkId}: ${why}`;
  if (said === undefined && endpoint === 'none') return refused('not_joined', what);
  await disconnect(daemon, spec);
  const left = await lookAtMembership(daemon, spec);
  return left.said === undefined && left.endpoint === 'none'
    ? refused('not_joined', what)
    : unknown('not_joined', `${what}; it is half in it`);
}

function connect(daemon: Daemon, spec: EffectSpecs['join-network']): Promise<DaemonError | undefined> {
  return answered(daemon.connect(spec.networkId, spec.engineContainerId, [ENGINE_ALIAS]));
}

function disconnect(daemon: Daemon, spec: EffectSpecs['join-network']): Promise<DaemonError | undefined> {
  return answered(daemon.disconnect(spec.networkId, spec.engineContainerId));
}

/** @returns what the daemon said instead; the look that follows is final, whatever it said */
async function answered(change: Promise<void>): Promise<DaemonError | undefined> {
  try {
    await change;
    return undefined;
  } catch (error) {
    if (isDaemonError(error, 'absent', 'conflict', 'refused', 'failed')) return error;
    throw error;
  }
}
