/** Where a sealed value belongs: what `seal` binds it to. In one place, since one process seals and another opens. */
import type { Tier } from '#kernel';

export function loginAad(environmentId: string, tier: Tier, what: 'password' | 'verifier'): string {
  return `login:${environmentId}:${tier}:${what}`;
}

export function serviceSecretAad(serviceId: string, name: string): string {
  return `service:${serviceId}:secret:${name}`;
}

/** @param server as an image names it: `registry.example.com:5000` */
export function registryAad(server: string): string {
  return `registry:${server}:password`;
}
