/**
 * Which gateway, and with what key: SUREFOOT_URL and SUREFOOT_API_KEY of the environment, each before what the state
 * folder says. With both, no state folder is needed.
 */
import { homeFromEnvironment, InvalidSettings, loadSettings, UnsafeState, type Settings } from '#settings';
import { CommandFailure, EXIT } from './failure.ts';

export interface Gateway {
  /** Without a slash at the end. */
  readonly url: string;
  readonly apiKey: string;
}

export function gatewayFrom(env: NodeJS.ProcessEnv): Gateway {
  const url = present(env['SUREFOOT_URL']);
  const apiKey = present(env['SUREFOOT_API_KEY']);
  if (url !== undefined && apiKey !== undefined) return { url: checked(url), apiKey };
  const settings = settingsFrom(env);
  const key = apiKey ?? settings.apiKey;
  if (key === undefined)
    throw new CommandFailure(EXIT.refused, 'unauthenticated', 'there is no API key', {
      next: `set SUREFOOT_API_KEY, or put it into ${settings.paths.localEnv}`,
    });
  return { url: checked(url ?? settings.url), apiKey: key };
}

export function settingsFrom(env: NodeJS.ProcessEnv): Settings {
  try {
    return loadSettings(homeFromEnvironment(env));
  } catch (error) {
    if (!(error instanceof InvalidSettings || error instanceof UnsafeState)) throw error;
    throw new CommandFailure(EXIT.unreachable, 'no_settings', error.message, {
      next: 'or reach a gateway elsewhere: set SUREFOOT_URL and SUREFOOT_API_KEY',
      cause: error,
    });
  }
}

function present(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

function checked(url: string): string {
  if (!URL.canParse(url) || !['http:', 'https:'].includes(new URL(url).protocol))
    throw new CommandFailure(EXIT.usage, 'usage', 'SUREFOOT_URL is not an http address');
  return url.replace(/\/+$/, '');
}
