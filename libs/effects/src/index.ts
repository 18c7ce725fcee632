/** Every effect kind and its act. A new kind does not compile until it has one. */
import type { EffectKind, EffectSpecs } from '#protocol';
import type { Act, ActContext, ActResult } from './contract.ts';
import { act as container } from './container/act.ts';
import { act as database } from './database/act.ts';
import { act as disown } from './disown/act.ts';
import { act as dropDatabase } from './drop-database/act.ts';
import { act as dropRoles } from './drop-roles/act.ts';
import { act as engineContainer } from './engine-container/act.ts';
import { act as engineFiles } from './engine-files/act.ts';
import { act as engineReady } from './engine-ready/act.ts';
import { act as engineStart } from './engine-start/act.ts';
import { act as healthy } from './healthy/act.ts';
import { act as image } from './image/act.ts';
import { act as interior } from './interior/act.ts';
import { act as joinNetwork } from './join-network/act.ts';
import { act as leaveNetwork } from './leave-network/act.ts';
import { act as network } from './network/act.ts';
import { act as portNetwork } from './port-network/act.ts';
import { act as probe } from './probe/act.ts';
import { act as profileRole } from './profile-role/act.ts';
import { act as publishDatabase } from './publish-database/act.ts';
import { act as publishService } from './publish-service/act.ts';
import { act as removeContainer } from './remove-container/act.ts';
import { act as removeEngineFiles } from './remove-engine-files/act.ts';
import { act as removeNetwork } from './remove-network/act.ts';
import { act as removePortNetwork } from './remove-port-network/act.ts';
import { act as removeService } from './remove-service/act.ts';
import { act as removeVolume } from './remove-volume/act.ts';
import { act as retireDatabase } from './retire-database/act.ts';
import { act as roles } from './roles/act.ts';
import { act as ruleFile } from './rule-file/act.ts';
import { act as rules } from './rules/act.ts';
import { act as secrets } from './secrets/act.ts';
import { act as start } from './start/act.ts';
import { act as volume } from './volume/act.ts';

const ACTS: { readonly [K in EffectKind]: Act<K> } = {
  roles,
  database,
  interior,
  'publish-database': publishDatabase,
  rules,
  probe,
  'retire-database': retireDatabase,
  'drop-database': dropDatabase,
  disown,
  'drop-roles': dropRoles,
  'join-network': joinNetwork,
  'leave-network': leaveNetwork,
  'port-network': portNetwork,
  'remove-port-network': removePortNetwork,
  container,
  secrets,
  start,
  healthy,
  'publish-service': publishService,
  'remove-service': removeService,
  'profile-role': profileRole,
  'engine-files': engineFiles,
  image,
  network,
  volume,
  'engine-container': engineContainer,
  'engine-start': engineStart,
  'engine-ready': engineReady,
  'rule-file': ruleFile,
  'remove-container': removeContainer,
  'remove-volume': removeVolume,
  'remove-network': removeNetwork,
  'remove-engine-files': removeEngineFiles,
};

/** Does one effect. Only the runner calls this. */
export function performEffect<K extends EffectKind>(
  context: ActContext,
  kind: K,
  spec: EffectSpecs[K],
): Promise<ActResult> {
  return ACTS[kind](context, spec);
}

export type { ActContext, ActResult, EffectSecrets, EnginePlace, TokenInHand } from './contract.ts';
