/** Fields that every log line may carry: one fixed set, so that lines of all processes can be joined. Never a secret. */
export interface LogFields {
  readonly operationId?: string;
  readonly jobId?: string;
  readonly claimId?: string;
  readonly attempt?: number;
  readonly effect?: string;
  readonly effectId?: string;
  readonly token?: string;
  readonly outcome?: string;
  readonly code?: string;
  readonly [more: string]: unknown;
}

/** One line per transition: a fixed message, data in fields. Adapters get it passed in; libs/telemetry implements it. */
export interface Logger {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields & { readonly error?: unknown }): void;
}
