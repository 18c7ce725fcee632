/** Rows as the statements return them. `bigint` columns are read as text by pg and turned into numbers where they are read. */
import type { EffectOutcome, JsonObject, Reason, Tier } from '#kernel';
import type {
  EffectKind,
  EngineState,
  EnvironmentState,
  Identities,
  OperationKind,
  OperationState,
  Pin,
  ServiceSpec,
} from '#protocol';

export interface OperationRow {
  readonly id: string;
  readonly kind: OperationKind;
  readonly host_id: string;
  readonly project_id: string | null;
  readonly environment_id: string | null;
  readonly engine_id: string;
  readonly requested_by: string | null;
  readonly request: JsonObject;
  readonly state: OperationState;
  readonly stage: string;
  readonly attempt: number;
  readonly claim_id: string | null;
  readonly cancel_requested: boolean;
  readonly superseded: boolean;
  readonly abandon: Reason | null;
  readonly preflight_interruptions: number;
  readonly stalled_resumes: number;
  readonly effects_at_resume: number;
}

export interface EffectRow {
  readonly id: string;
  readonly operation_id: string;
  readonly claim_id: string;
  readonly ordinal: number;
  readonly kind: EffectKind;
  readonly spec: JsonObject;
  readonly outcome: EffectOutcome;
  readonly facts: JsonObject;
  readonly reason: Reason | null;
  readonly token: string;
}

export interface EngineRow {
  readonly id: string;
  readonly name: string;
  readonly host_id: string;
  readonly state: EngineState;
  readonly image: string;
  readonly port: number;
  readonly network_pool: string;
  readonly identity: string;
  readonly identities: Identities;
  readonly generation: number | null;
  readonly rule_generation: number | null;
  readonly profiles: readonly string[];
  readonly pin: Pin | null;
}

export interface EnvironmentRow {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  readonly state: EnvironmentState;
  readonly engine_id: string;
  readonly profile: string;
  readonly extensions: readonly string[];
  readonly connection_limit: number;
  readonly database_name: string;
  readonly identities: Identities;
}

export interface ServiceRow {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly spec: ServiceSpec;
}

/** What the watcher saw of a service's container. Nothing but what the daemon says. */
export interface ServiceObservation {
  readonly state: ServiceState;
  readonly exitCode?: number;
  readonly outOfMemory?: boolean;
  /** Starts by the daemon since the container was made. */
  readonly restarts: number;
  /** RFC 3339, of the daemon's clock. */
  readonly startedAt?: string;
  readonly finishedAt?: string;
}

/** `missing`: the daemon has no such container. */
export type ServiceState = 'created' | 'running' | 'unhealthy' | 'paused' | 'restarting' | 'exited' | 'missing';

export interface LoginRow {
  readonly tier: Tier;
  readonly user_name: string;
  readonly password_sealed: Buffer;
  readonly verifier_sealed: Buffer;
}
