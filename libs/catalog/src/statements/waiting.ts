/** What stands in the way of an operation, and what its `waitingFor` says then. */

export interface OtherOperation {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  /** The open case of a blocked one: what somebody has to decide. */
  readonly case_id: string | null;
}

/**
 * Whether `operations o` stands in the way of the queued `operations m`. A change that is still queued and a delete that
 * arrived later: the delete has cancelled it, so of two that are queued only the delete waits.
 */
export const IN_THE_WAY = /* sql */ `
  o.environment_id = m.environment_id and o.id <> m.id
  and (o.state in ('running', 'blocked') or (o.state = 'queued' and o.kind <> 'environment.delete'))`;

/** A subquery for `case_id` beside a table `operations o`. */
export const OPEN_CASE_ID = /* sql */ `(select c.id from cases c where c.operation_id = o.id and c.closed_at is null limit 1)`;

export function waitingForOperation(other: OtherOperation): string {
  const what = `operation ${other.id} (${other.kind}) is ${other.state}`;
  return other.case_id === null ? what : `a decision on case ${other.case_id}: ${what}`;
}
