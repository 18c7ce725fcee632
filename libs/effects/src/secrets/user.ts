/** Whom a container's `User` means, by the rules of Docker (moby/sys/user, `GetExecUser`). */

export interface ContainerUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * @param text `name`, `uid`, `name:group`, `uid:gid`; empty is root
 * @param passwd content of /etc/passwd; empty where there is none
 * @param group content of /etc/group; empty where there is none
 * @returns undefined when a name is in neither
 */
export function resolveUser(text: string, passwd: string, group: string): ContainerUser | undefined {
  const [userPart = '', groupPart = ''] = text.split(':');
  const wanted = userPart === '' ? '0' : userPart;
  const number = numeric(wanted);
  // A number is always an id, also where somebody is named like it.
  const entry = entriesOf(passwd).find(([name, , uid]) =>
    number === undefined ? name === wanted : numeric(uid) === number,
  );
  const uid = number ?? numeric(entry?.[2]);
  if (uid === undefined) return undefined;
  const gid = groupPart === '' ? (numeric(entry?.[3]) ?? 0) : resolveGroup(groupPart, group);
  return gid === undefined ? undefined : { uid, gid };
}

function resolveGroup(text: string, group: string): number | undefined {
  const number = numeric(text);
  if (number !== undefined) return number;
  return numeric(entriesOf(group).find(([name]) => name === text)?.[2]);
}

function entriesOf(file: string): readonly (readonly string[])[] {
  return file.split('\n').map((line) => line.trim().split(':'));
}

const ID_MAX = 2 ** 31 - 1;

function numeric(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  const number = Number(text);
  return number <= ID_MAX ? number : undefined;
}
