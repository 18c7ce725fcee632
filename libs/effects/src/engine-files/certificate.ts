/**
 * The engine's certificate, issued by this host's own authority: a client that trusts the authority reaches this engine and
 * no other. ECDSA P-256, for the names that an engine has on its own host and on an environment's network.
 */
import { createPrivateKey, randomBytes, webcrypto, X509Certificate } from 'node:crypto';

export interface CertificatePair {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

export interface Authority {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
}

const DNS_NAMES = ['localhost', 'db'];
const ADDRESSES = ['127.0.0.1', '::1'];
const LIFE_YEARS = 10;
const DAY_MS = 24 * 60 * 60 * 1_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Whether a pair is one that this authority issued for these names, whole, and good for another month. */
export function isUsable(pair: CertificatePair, authority: Authority, now: number): boolean {
  try {
    const certificate = new X509Certificate(pair.certificate);
    const issuer = new X509Certificate(authority.certificate);
    return (
      certificate.checkIssued(issuer) &&
      certificate.verify(issuer.publicKey) &&
      certificate.checkPrivateKey(createPrivateKey(pair.key)) &&
      DNS_NAMES.every((name) => certificate.checkHost(name) !== undefined) &&
      ADDRESSES.every((address) => certificate.checkIP(address) !== undefined) &&
      Date.parse(certificate.validTo) > now + 30 * DAY_MS
    );
  } catch {
    // Not PEM, cut short, somebody else's text: not usable, and made anew.
    return false;
  }
}

/** Loaded when it is needed: it is large, and once per engine. */
export async function issueCertificate(engineId: string, authority: Authority, now: number): Promise<CertificatePair> {
  // The library's parts find each other by decorators.
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' }),
    ALGORITHM,
    false,
    ['sign'],
  );
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create({
    // RFC 5280: positive, at most 20 bytes.
    serialNumber: `01${randomBytes(15).toString('hex')}`,
    subject: [{ CN: [`Surefoot engine ${engineId}`] }],
    issuer: issuer.subject,
    // A clock that is set back a little must not make a new engine unreachable.
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(Math.min(now + LIFE_YEARS * 365 * DAY_MS, issuer.notAfter.getTime())),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([
        ...DNS_NAMES.map((value) => ({ type: 'dns' as const, value })),
        ...ADDRESSES.map((value) => ({ type: 'ip' as const, value })),
      ]),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(await issuer.publicKey.export()),
    ],
  });
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { certificate: `${certificate.toString('pem')}\n`, key: `${key}\n` };
}
