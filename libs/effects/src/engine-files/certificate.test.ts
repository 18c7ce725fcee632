import { X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import 'reflect-metadata';
import { BasicConstraintsExtension, PemConverter, X509CertificateGenerator } from '@peculiar/x509';
import type { Authority, CertificatePair } from './certificate.ts';
import { isUsable, issueCertificate } from './certificate.ts';

const DAY_MS = 86_400_000;
const now = Date.parse('2026-06-01T00:00:00Z');

async function authority(days: number): Promise<Authority> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Authority',
    notBefore: new Date(now - DAY_MS),
    notAfter: new Date(now + days * DAY_MS),
    keys,
    signingAlgorithm: algorithm,
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  });
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { certificate: certificate.toString('pem'), key: PemConverter.encode(key, 'PRIVATE KEY') };
}

describe('an engine’s certificate', () => {
  let ours: Authority;
  let pair: CertificatePair;

  beforeAll(async () => {
    ours = await authority(3_650);
    pair = await issueCertificate('7d4f2d0e-9d43-4b0b-8a55-4f1f6f0d6f11', ours, now);
  });

  test('is usable as it was issued, and names the engine on its host and on its networks', () => {
    expect(isUsable(pair, ours, now)).toBe(true);
    const certificate = new X509Certificate(pair.certificate);
    expect(certificate.subjectAltName).toBe('DNS:localhost, DNS:db, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1');
    expect(certificate.ca).toBe(false);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  test('does not outlive its authority', async () => {
    const short = await authority(40);
    const issued = new X509Certificate((await issueCertificate('x', short, now)).certificate);
    expect(Date.parse(issued.validTo)).toBe(now + 40 * DAY_MS);
  });

  test('is not usable under another authority, with another key, cut short, or near its end', async () => {
    expect(isUsable(pair, await authority(3_650), now)).toBe(false);
    expect(isUsable({ ...pair, key: ours.key }, ours, now)).toBe(false);
    expect(isUsable({ ...pair, certificate: pair.certificate.slice(0, 200) }, ours, now)).toBe(false);
    expect(isUsable({ certificate: '', key: '' }, ours, now)).toBe(false);
    expect(isUsable(pair, ours, now + 3_640 * DAY_MS)).toBe(false);
  });
});
