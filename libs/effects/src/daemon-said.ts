/** What the daemon's own sentence tells beyond its status, which says no more than that it failed. */
export function codeOf(message: string, otherwise: string): string {
  if (/port is already allocated|address already in use/i.test(message)) return 'port_taken';
  return /no space left on device/i.test(message) ? 'disk_full' : otherwise;
}
