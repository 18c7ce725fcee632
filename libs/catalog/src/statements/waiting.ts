/** What `waitingFor` says while another operation of the same environment stands in the way. */

export interface OtherOperation {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  /** The open case of a blocked one: what somebody has to decide. */
  readonly case_id: string | null;
}

/** A subquery for `case_id` beside a table `operations o`. */
export const OPEN_CASE_ID = /* sql */ `(select c.id from cases c where c.operation_id = o.id and c.closed_at is null limit 1)`;

export function waitingForOperation(other: OtherOperation): string {
  const what = `operation ${other.id} (${other.kind}) is ${other.state}`;
  return other.case_id === null ? what : `a decision on case ${other.case_id}: ${what}`;
}
