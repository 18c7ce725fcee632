/**
 * The certificate authority of this host: engines get their certificates from it, and clients trust it by `sslrootcert`.
 * ECDSA P-256, ten years; it signs servers and nothing below them.
 */
import 'reflect-metadata';
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  webcrypto,
  X509Certificate,
} from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import {
  BasicConstraintsExtension,
  cryptoProvider,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { replaceFile } from '#receipts';
import { readPrivateFile, UnsafeState, type HomePaths } from '#settings';
import { publishOnce, type Say } from './host-state.ts';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNING_ALGORITHM = { ...KEY_ALGORITHM, hash: 'SHA-256' };
const LIFETIME_YEARS = 10;
/** Clocks of clients that are a little behind. */
const BACKDATED_MS = 60 * 60_000;
/** Everybody who connects needs it. */
const CERTIFICATE_MODE = 0o644;

/** Goes on where an earlier run was interrupted: the key is durable before the certificate. */
export async function makeAuthority(paths: HomePaths, installation: string, say: Say): Promise<void> {
  cryptoProvider.set(webcrypto);
  const { caFile, caKeyFile } = paths;
  const hasCertificate = existsSync(caFile);
  if (!existsSync(caKeyFile)) {
    if (hasCertificate)
      throw new UnsafeState(caKeyFile, 'is missing', `restore it from a copy: it belongs to ${caFile}`);
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    publishOnce(caKeyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }).toString());
  }
  const keyPem = readPrivateFile(caKeyFile);
  if (hasCertificate) {
    if (!new X509Certificate(readFileSync(caFile)).checkPrivateKey(createPrivateKey(keyPem)))
      throw new UnsafeState(caFile, 'is not the certificate of the key beside it', 'restore both from one copy');
    return;
  }
  replaceFile(caFile, `${await certify(await importKeys(keyPem), installation)}\n`, CERTIFICATE_MODE);
  say(`made the certificate authority of this host, ${caFile}`);
}

async function certify(keys: webcrypto.CryptoKeyPair, installation: string): Promise<string> {
  const now = new Date();
  const notAfter = new Date(now);
  notAfter.setUTCFullYear(now.getUTCFullYear() + LIFETIME_YEARS);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    // A positive number, as RFC 5280 asks for.
    serialNumber: `01${randomBytes(15).toString('hex')}`,
    name: `CN=Surefoot ${installation}`,
    notBefore: new Date(now.getTime() - BACKDATED_MS),
    notAfter,
    signingAlgorithm: SIGNING_ALGORITHM,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return certificate.toString('pem');
}

async function importKeys(pem: string): Promise<webcrypto.CryptoKeyPair> {
  const spki = createPublicKey(pem).export({ format: 'der', type: 'spki' });
  const [privateKey, publicKey] = await Promise.all([
    webcrypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pem), KEY_ALGORITHM, false, ['sign']),
    webcrypto.subtle.importKey('spki', spki, KEY_ALGORITHM, true, ['verify']),
  ]);
  return { privateKey, publicKey };
}
