import { expect, test } from '@jest/globals';
import { connectionString, passwordLine } from './psql-session.ts';

const target = {
  host: 'localhost',
  port: '15433',
  database: `it's a \\ name`,
  user: 'a:b\\c',
  rootCertificate: '/tmp/a b/ca.pem',
};

test('a connection string holds any name, and no password', () => {
  expect(connectionString(target)).toBe(
    `host='localhost' port='15433' dbname='it\\'s a \\\\ name' user='a:b\\\\c' sslmode='verify-full' sslrootcert='/tmp/a b/ca.pem'`,
  );
});

test('a password line escapes what would end a field, and is for any database of the server', () => {
  expect(passwordLine(target, 'p:w\\')).toBe('localhost:15433:*:a\\:b\\\\c:p\\:w\\\\');
});
