export type FindingStatus = 'ok' | 'warning' | 'failed';

export interface Finding {
  readonly check: string;
  readonly status: FindingStatus;
  /** A sentence, without secrets; for what is not well, it says what to do. */
  readonly detail: string;
}

export function ok(check: string, detail: string): Finding {
  return { check, status: 'ok', detail };
}

export function warning(check: string, detail: string): Finding {
  return { check, status: 'warning', detail };
}

export function failed(check: string, detail: string): Finding {
  return { check, status: 'failed', detail };
}

/** A check that cannot be made is a finding too. */
export async function finding(check: string, look: () => Promise<Finding> | Finding): Promise<Finding> {
  try {
    return await look();
  } catch (error) {
    return failed(check, reasonOf(error));
  }
}

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && !error.message.includes(code) ? `${error.message} (${code})` : error.message;
}
