import { fileURLToPath } from 'node:url'
import type { HostStart } from '../../driver/host-process.ts'

/** Runs a shell command in mounts of its own, then the host. The mounts go with the process. */
export function inOwnMounts(command: string): readonly string[] {
  return ['unshare', '--mount', 'sh', '-c', `${command} && exec "$@"`, 'sh']
}

/** A host in a user namespace that has all ids and may make no further user namespace. */
export function withoutUserNamespaces(): HostStart {
  return { prefix: ['python3', script('no-user-namespaces.py')] }
}

/** A host whose kernel has no system call filters. */
export function withoutSeccomp(): HostStart {
  return { prefix: ['python3', script('no-seccomp.py')] }
}

function script(name: string): string {
  return fileURLToPath(new URL(`${name}`, import.meta.url))
}
