import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { connectionUri } from './connection-uri.ts';
import { environmentNameFault, environmentNames } from './names.ts';

const ID = '0b8fd4c2-6a2e-4e43-9d0a-1d7e8a5b6c7d';

test('an address leads to the same user, password and database, for every name that create accepts', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 45 }), (name) => {
      fc.pre(environmentNameFault(name) === undefined);
      const { database, logins } = environmentNames(name, ID);
      const uri = connectionUri({
        host: 'localhost',
        port: 5,
        database,
        user: logins.app,
        password: 'p%4@:/?',
        sslRootCert: '/ca',
      });
      const url = new URL(uri);
      expect(decodeURIComponent(url.username)).toBe(logins.app);
      expect(decodeURIComponent(url.password)).toBe('p%4@:/?');
      expect(decodeURIComponent(url.pathname.slice(1))).toBe(database);
      expect(uri).toMatch(/^[A-Za-z0-9\-._~:/?&=@%$+,;]+$/);
      // node-postgres reads the path so; see `pathEncoded`.
      if (!/[?#]/.test(name)) expect(decodeURI(url.pathname.slice(1))).toBe(database);
    }),
  );
});

test('the authority’s file is named by its path, with spaces in it too', () => {
  const uri = connectionUri({
    host: 'localhost',
    port: 5499,
    database: 'a_b',
    user: 'u',
    password: 'p',
    sslRootCert: '/home/some one/.surefoot/host/ca/ca.pem',
  });
  expect(uri).toBe(
    'postgresql://u:p@localhost:5499/a_b?sslmode=verify-full&sslrootcert=/home/some%20one/.surefoot/host/ca/ca.pem',
  );
  expect(new URL(uri).searchParams.get('sslrootcert')).toBe('/home/some one/.surefoot/host/ca/ca.pem');
});

test('a service in the environment’s network reaches its engine as db', () => {
  const uri = connectionUri({
    host: 'db',
    port: 5432,
    database: 'a_b',
    user: 'a_b_app',
    password: 'p',
    sslRootCert: '/run/surefoot/ca.pem',
  });
  expect(uri).toBe('postgresql://a_b_app:p@db:5432/a_b?sslmode=verify-full&sslrootcert=/run/surefoot/ca.pem');
});
