/** What this program reads of the objects of `/v1`; the gateway may show more (docs/generated/openapi.json). */
import type { EffectOutcome, FieldFault, LogLine, Reason, Tier } from '#kernel';
import type { EngineState, EnvironmentState, OperationState } from '#protocol';

export interface Environment {
  readonly id: string;
  readonly project: string;
  readonly name: string;
  readonly state: EnvironmentState;
  readonly engine: string;
  readonly host: string;
  readonly profile: string;
  readonly extensions: readonly string[];
  readonly connectionLimit: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Why it is degraded. */
  readonly reason: Reason | null;
  readonly services: readonly Service[];
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly database: string;
    readonly users: Readonly<Record<Tier, string>>;
    readonly sslmode: string;
  };
  readonly createdAt: string;
}

export interface Service {
  readonly name: string;
  readonly image: string;
  readonly state: string;
  readonly ports: readonly { readonly container: number; readonly address: string; readonly host: number | null }[];
  /** Names of variables and of secrets. */
  readonly env: readonly string[];
  readonly secrets: readonly string[];
  readonly health: {
    readonly http?: { readonly port: number; readonly path: string };
    readonly tcp?: { readonly port: number };
    readonly deadlineSeconds: number;
  };
  readonly limits: { readonly memory: number; readonly cpus: number; readonly pids: number };
  readonly readOnly: boolean;
  readonly user: string | null;
  readonly restarts?: number;
  readonly exitCode?: number;
  readonly outOfMemory?: boolean;
}

export interface Log {
  readonly items: readonly LogLine[];
  readonly truncated: boolean;
}

export interface Login {
  readonly tier: Tier;
  readonly user: string;
  readonly password: string;
  readonly uri: string;
}

export interface Effect {
  readonly kind: string;
  /** Name of the service that it is about. */
  readonly service?: string;
  readonly outcome: EffectOutcome;
  readonly startedAt: string;
  readonly settledAt: string | null;
}

export interface Operation {
  readonly id: string;
  readonly kind: string;
  readonly environmentId: string | null;
  readonly environmentName?: string;
  readonly state: OperationState;
  readonly stage: string;
  readonly attempt: number;
  readonly effects: readonly Effect[];
  readonly reason: Reason | null;
  /** How far the effect in hand is. */
  readonly progress?: string;
  readonly waitingFor?: string;
  readonly caseId?: string;
  readonly createdAt: string;
  readonly finishedAt: string | null;
}

export interface Project {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
}

export interface Registry {
  readonly server: string;
  readonly username: string;
  readonly createdAt: string;
}

export interface Engine {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly state: EngineState;
  readonly image: string;
  readonly port: number;
  readonly extensions: readonly string[];
  readonly generation: number | null;
  readonly ruleGeneration: number | null;
  readonly pin: Readonly<Record<string, unknown>> | null;
  readonly waitingFor?: string;
  readonly createdAt: string;
}

export interface Case {
  readonly id: string;
  readonly kind: string;
  readonly state: 'open' | 'closed';
  readonly host: string;
  readonly engineId: string | null;
  readonly environmentId: string | null;
  readonly operationId: string | null;
  readonly effectId: string | null;
  readonly reason: Reason;
  readonly evidence: Readonly<Record<string, unknown>>;
  readonly openedAt: string;
  readonly closedAt: string | null;
}

/** Problem document (RFC 9457). */
export interface ProblemDocument {
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly errors?: readonly FieldFault[];
  readonly operationId?: string;
  readonly environmentId?: string;
}
