import type { ShownOperation } from '#catalog';
import type { OperationView } from '../schemas/operation.ts';

export function toOperationView(row: ShownOperation): OperationView {
  return {
    id: row.id,
    kind: row.kind,
    environmentId: row.environment_id,
    ...(row.environment === null ? {} : { environmentName: row.environment }),
    state: row.state,
    stage: row.stage,
    attempt: row.attempt,
    effects: row.effects.map(({ kind, service, outcome, started, settled }) => ({
      kind,
      ...(service === null ? {} : { service }),
      outcome,
      startedAt: new Date(started).toISOString(),
      settledAt: settled === null ? null : new Date(settled).toISOString(),
    })),
    reason: row.reason,
    ...(row.progress === null ? {} : { progress: row.progress }),
    ...(row.waiting_for === null ? {} : { waitingFor: row.waiting_for }),
    ...(row.case_id === null ? {} : { caseId: row.case_id }),
    createdAt: row.created_at.toISOString(),
    finishedAt: row.finished_at?.toISOString() ?? null,
  };
}
