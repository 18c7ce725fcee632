/**
 * The folders of an engine and what its server reads: configuration, rule generation 0 (nobody but the administrator gets
 * in), certificate, entrypoint, and what its databases begin with. Done again, it changes nothing.
 *
 * The administrator's password is made here and stays on this host; the container gets its SCRAM verifier only.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CERTIFICATE_FILE, engineAsset, ensureFolder, placeConfFile, readIfThere, RULE_FILE, sha256 } from '#engines';
import { parseRuleFile, renderRuleFile } from '#hba';
import { quoteLiteral } from '#kernel';
import { scramVerifier } from '#postgres';
import { publishFile } from '#receipts';
import type { Act, ActContext, EnginePlace } from '../contract.ts';
import { applied, refused } from '../contract.ts';
import { isUsable, issueCertificate } from './certificate.ts';

/** The engine's group reads and passes. */
const CONF_FOLDER_MODE = 0o750;
/** The server makes its socket there with its group; what the worker's user makes there keeps the group too. */
const SOCKET_FOLDER_MODE = 0o2770;

export const act: Act<'engine-files'> = async (context, { engineId }) => {
  const { engine } = context;
  const path = (name: string): string => join(engine.confFolder, name);
  ensureFolder(engine.folder, 0o700);
  ensureFolder(engine.confFolder, CONF_FOLDER_MODE);
  ensureFolder(engine.socketFolder, SOCKET_FOLDER_MODE);

  const rules = renderRuleFile({ engineId, generation: 0, profiles: [] }, sha256);
  const inPlace = readIfThere(path(RULE_FILE));
  if (inPlace !== undefined && inPlace !== rules)
    return refused('foreign_object', `${path(RULE_FILE)} is there already: ${describe(inPlace)}`);

  const password = administratorPassword(engine.adminPasswordFile);
  placeConfFile(
    path('administrator.verifier'),
    `${await verifierOf(password, readIfThere(path('administrator.verifier')))}\n`,
  );
  await placeCertificate(engine, engineId);
  for (const [name, content] of Object.entries(staticFiles(context, engineId))) placeConfFile(path(name), content);
  placeConfFile(path(RULE_FILE), rules);
  return applied({ ruleDigest: sha256(rules) });
};

function describe(text: string): string {
  const file = parseRuleFile(text, sha256);
  return file.is === 'ours' ? `generation ${file.generation} of engine ${file.engineId}` : file.why;
}

/** Made once: the server knows the first one, and a file that is there is never overwritten. */
function administratorPassword(path: string): string {
  const there = readIfThere(path);
  if (there !== undefined) return there.trim();
  const password = randomBytes(32).toString('base64url');
  publishFile(path, password);
  return password;
}

/** The verifier that is there, if it is this password's: a new salt would be another file for the same thing. */
async function verifierOf(password: string, there: string | undefined): Promise<string> {
  const salt = /^SCRAM-SHA-256\$\d+:([A-Za-z0-9+/=]+)\$/.exec(there ?? '')?.[1];
  if (salt !== undefined) {
    const again = await scramVerifier(password, Buffer.from(salt, 'base64'));
    if (again === there?.trim()) return again;
  }
  return scramVerifier(password);
}

async function placeCertificate(engine: EnginePlace, engineId: string): Promise<void> {
  const certificatePath = join(engine.confFolder, CERTIFICATE_FILE);
  const keyPath = join(engine.confFolder, 'server.key');
  const authority = {
    certificate: readFileSync(engine.caFile, 'utf8'),
    key: readFileSync(engine.caKeyFile, 'utf8'),
  };
  const there = { certificate: readIfThere(certificatePath) ?? '', key: readIfThere(keyPath) ?? '' };
  const now = Date.now();
  if (isUsable(there, authority, now)) return;
  const made = await issueCertificate(engineId, authority, now);
  placeConfFile(keyPath, made.key);
  placeConfFile(certificatePath, made.certificate);
}

function staticFiles({ installation, engine }: ActContext, engineId: string): Readonly<Record<string, string>> {
  const asset = (name: string): string => readFileSync(engineAsset(name), 'utf8');
  const identity = [installation, engineId, engine.identity].map(quoteLiteral).join(', ');
  const control = [
    asset('tokens-and-ledger.sql'),
    asset('identity.sql'),
    `insert into surefoot.identity (installation, engine, identity, claim_number) values (${identity}, 0);\n`,
  ];
  return {
    'entrypoint.sh': asset('entrypoint.sh'),
    'postgresql.surefoot.conf': asset('postgresql.surefoot.conf'),
    'pg_ident.conf': '# No system user is mapped to another name.\n',
    'bootstrap.sql': asset('bootstrap.sql'),
    // In single-user mode an empty line ends a command.
    'control.sql': control.join('\n'),
    'template.sql': asset('tokens-and-ledger.sql'),
  };
}
