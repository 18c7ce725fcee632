import { setTimeout } from 'node:timers/promises';
import type Dockerode from 'dockerode';
import { DaemonError } from './errors.ts';
import { frames } from './frames.ts';

export interface ExecRequest {
  readonly command: readonly string[];
  /** `user:group` as Docker takes it. */
  readonly user: string;
  readonly env: Readonly<Record<string, string>>;
  /** A program that says more is given up. */
  readonly maxBytes: number;
}

export interface ExecEnd {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

const STILL_RUNNING_MS = 20;

/** @throws DaemonError, and what dockerode throws */
export async function runExec(
  client: Dockerode,
  containerId: string,
  { command, user, env, maxBytes }: ExecRequest,
  abortSignal: AbortSignal,
): Promise<ExecEnd> {
  const exec = await client.getContainer(containerId).exec({
    Cmd: [...command],
    User: user,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    AttachStdout: true,
    AttachStderr: true,
    abortSignal,
  });
  const said = await read(await exec.start({ Detach: false, Tty: false, abortSignal }), maxBytes);
  for (;;) {
    // The end of what it says comes before its end.
    const { Running, ExitCode } = await exec.inspect({ abortSignal });
    if (!Running && ExitCode !== null) return { exitCode: ExitCode, ...said };
    await setTimeout(STILL_RUNNING_MS, undefined, { signal: abortSignal });
  }
}

async function read(stream: NodeJS.ReadableStream, maxBytes: number): Promise<Omit<ExecEnd, 'exitCode'>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    if (bytes > maxBytes) throw new DaemonError('failed', `a program said more than ${maxBytes} bytes`);
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  const text = (from: 'stdout' | 'stderr'): string =>
    Buffer.concat(
      frames(Buffer.concat(chunks))
        .filter((frame) => frame.stream === from)
        .map((frame) => frame.bytes),
    ).toString('utf8');
  return { stdout: text('stdout'), stderr: text('stderr') };
}
