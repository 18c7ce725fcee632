import { X509Certificate } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { readEpoch, writeEpoch } from '#receipts';
import { homePaths, UnsafeState } from '#settings';
import { makeAuthority } from './certificate-authority.ts';
import { AgeContradiction, makeFolders, makeSealingKey, prepareIdentity } from './host-state.ts';

const INSTALLATION = '0b9d2f3e-5b77-4c0e-9a55-0f6c1d2e3f40';

let home = '';
let said: string[] = [];
const say = (line: string): void => void said.push(line);
const paths = () => homePaths(home);
const modeOf = (path: string): number => statSync(path).mode & 0o777;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'setup-'));
  said = [];
});

afterEach(() => rmSync(home, { recursive: true }));

test('folders are closed to others, and one that is open or a link is refused', () => {
  makeFolders(paths());
  makeFolders(paths());
  expect(modeOf(paths().receipts)).toBe(0o700);
  chmodSync(paths().witnesses, 0o755);
  expect(() => makeFolders(paths())).toThrow(UnsafeState);
  rmSync(paths().witnesses, { recursive: true });
  symlinkSync(paths().receipts, paths().witnesses);
  expect(() => makeFolders(paths())).toThrow(/symbolic link/);
});

test('the sealing key is made once', () => {
  makeFolders(paths());
  makeSealingKey(paths().key, say);
  const key = readFileSync(paths().key, 'utf8');
  makeSealingKey(paths().key, say);
  expect(readFileSync(paths().key, 'utf8')).toBe(key);
  expect(modeOf(paths().key)).toBe(0o600);
  expect(said).toHaveLength(1);
});

test('the authority is made once, signs servers only, and its key is closed to others', async () => {
  makeFolders(paths());
  await makeAuthority(paths(), INSTALLATION, say);
  const pem = readFileSync(paths().caFile, 'utf8');
  await makeAuthority(paths(), INSTALLATION, say);
  expect(readFileSync(paths().caFile, 'utf8')).toBe(pem);
  const certificate = new X509Certificate(pem);
  expect(certificate.ca).toBe(true);
  expect(certificate.subject).toBe(`CN=Surefoot ${INSTALLATION}`);
  expect(certificate.verify(certificate.publicKey)).toBe(true);
  expect(certificate.validToDate.getUTCFullYear() - new Date().getUTCFullYear()).toBe(10);
  expect([modeOf(paths().caKeyFile), modeOf(paths().caFile)]).toEqual([0o600, 0o644]);
});

test('an authority whose making was interrupted after the key gets its certificate', async () => {
  makeFolders(paths());
  await makeAuthority(paths(), INSTALLATION, say);
  const key = readFileSync(paths().caKeyFile, 'utf8');
  rmSync(paths().caFile);
  await makeAuthority(paths(), INSTALLATION, say);
  expect(readFileSync(paths().caKeyFile, 'utf8')).toBe(key);
  await makeAuthority(paths(), INSTALLATION, say);
  expect(said).toHaveLength(2);
});

test('a certificate without its key, or with another one, is not replaced', async () => {
  makeFolders(paths());
  await makeAuthority(paths(), INSTALLATION, say);
  const pem = readFileSync(paths().caFile, 'utf8');
  rmSync(paths().caKeyFile);
  await expect(makeAuthority(paths(), INSTALLATION, say)).rejects.toThrow(/restore it from a copy/);
  rmSync(paths().caFile);
  await makeAuthority(paths(), INSTALLATION, say);
  writeFileSync(paths().caFile, pem);
  await expect(makeAuthority(paths(), INSTALLATION, say)).rejects.toThrow(/not the certificate of the key/);
});

test('an identity that was prepared and never committed is taken up; one that has worked is not', () => {
  makeFolders(paths());
  const identity = prepareIdentity(paths().epoch);
  expect(prepareIdentity(paths().epoch)).toBe(identity);
  expect(readEpoch(paths().epoch)).toEqual({ identity, claimNumber: 0 });
  writeEpoch(paths().epoch, { identity, claimNumber: 1 });
  expect(() => prepareIdentity(paths().epoch)).toThrow(AgeContradiction);
});
