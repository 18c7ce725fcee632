/** Bounds of the protocol, in one place. Sources: DESIGN §3, §4, §9. */

/** An effect that does not say otherwise is stopped after this long. */
export const EFFECT_DEADLINE_MS = 180_000;
/** No effect may ask for more. */
export const EFFECT_DEADLINE_MAX_MS = 600_000;
/** A claim lives at most this long; the broker's delivery timeout (30 minutes by default) must be longer. */
export const CLAIM_DEADLINE_MS = 20 * 60_000;
/** How long a worker that was asked to stop may take to finish and settle the effect in hand. */
export const STOP_GRACE_MS = 5_000;
/** A job that was interrupted before any change is requeued by itself this often per operation, then fails. */
export const PREFLIGHT_INTERRUPTIONS_MAX = 3;
/** An operation with settled effects may be interrupted this often without a new settled effect in between. */
export const STALLED_RESUMES_MAX = 3;
/** Rounds of "disown, drop again" before a delete blocks. */
export const DROP_ROLES_ROUNDS_MAX = 3;
/** The worker looks into the catalog for open jobs this often, so that a lost message costs delay and nothing else. */
export const JOB_LOOK_INTERVAL_MS = 2_000;

/** A host with less free space for its records takes no new work: a witness that cannot be written leaves an unknown outcome. */
export const FREE_SPACE_MIN_BYTES = 64 * 1024 * 1024;

/** Longest environment name, in UTF-8 bytes: PostgreSQL's 63, less `_` and 8 hexadecimal digits, less `_readonly`. */
export const ENVIRONMENT_NAME_MAX_BYTES = 45;
export const CONNECTION_LIMIT_DEFAULT = 20;
export const CONNECTION_LIMIT_MAX = 1_000;
export const REQUEST_BODY_MAX_BYTES = 256 * 1024;

/** What a service is made with where nothing else is asked for. */
export const SERVICE_DEFAULTS = { memoryBytes: 256 * 1024 ** 2, cpus: 1, pids: 256, deadlineSeconds: 60 };
