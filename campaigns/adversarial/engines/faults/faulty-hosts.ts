import { fileURLToPath } from 'node:url'
import type { HostStart } from '../../driver/host-process.ts'

/** Start prefix that runs a shell command in a private mount namespace, then the host. The mounts end with the host. */
export function withPrivateMounts(command: string): readonly string[] {
  return ['unshare', '--mount', 'sh', '-c', `${command} && exec "$@"`, 'sh']
}

/** A host in a user namespace that maps all ids and forbids further user namespaces. */
export function withoutUserNamespaces(): HostStart {
  return { prefix: ['python3', script('no-user-namespaces.py')] }
}

/** A host on which loading a system call filter fails. */
export function withoutSeccomp(): HostStart {
  return { prefix: ['python3', script('no-seccomp.py')] }
}

function script(name: string): string {
  return fileURLToPath(new URL(`${name}`, import.meta.url))
}
