/**
 * `local.env`: lines `NAME=value`, written so that a shell can source them as they stand. A value may be a key, so a
 * message only ever tells the line or the name.
 */

/** `local.env`, or a value in it, cannot be used. Names every fault at once. */
export class InvalidSettings extends Error {
  constructor(path: string, faults: readonly string[]) {
    super(`${path} cannot be used: ${faults.join('; ')}`);
    this.name = 'InvalidSettings';
  }
}

const NAME = /^[A-Z][A-Z0-9_]*$/;
/** Characters that every shell reads as themselves. */
const VALUE = /^[\w./:@%?=+,~-]*$/;

/** @throws InvalidSettings on any line that is neither empty, a comment, nor one plain assignment made once. */
export function parseLocalEnv(path: string, text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  const faults: string[] = [];
  text.split('\n').forEach((line, index) => {
    if (line.trim() === '' || line.startsWith('#')) return;
    const at = line.indexOf('=');
    const name = line.slice(0, Math.max(at, 0));
    const value = line.slice(at + 1);
    if (!NAME.test(name) || !VALUE.test(value)) faults.push(`line ${index + 1} is not NAME=value`);
    else if (values.has(name)) faults.push(`line ${index + 1} sets ${name} a second time`);
    else values.set(name, value);
  });
  if (faults.length > 0) throw new InvalidSettings(path, faults);
  return values;
}
