import { type Container, containers } from '../../../support/containers.ts'
import { eventually } from '../../../support/eventually.ts'
import type { DaemonProxy } from './daemon-proxy.ts'

/** The existing containers of this process, in any state. */
export function ownContainers(daemon?: string): Container[] {
  return containers(daemon).filter(({ owner }) => owner === process.pid)
}

/** Waits until no container is left; returns undefined or the names of those that remain. */
export function findLeftContainers(daemon?: string, withinMs = 15_000): Promise<string | undefined> {
  return waitForNone(() => ownContainers(daemon), withinMs)
}

/** The same for the containers that were made through a proxy, without those of other tests. */
export function findLeftContainersOf(proxy: DaemonProxy, withinMs = 15_000): Promise<string | undefined> {
  if (proxy.containers.size === 0) throw new Error('no request for a container passed this proxy')
  return waitForNone(() => ownContainers().filter(({ name }) => proxy.containers.has(name)), withinMs)
}

function waitForNone(list: () => Container[], withinMs: number): Promise<string | undefined> {
  return eventually(() => {
    const left = list()
    return left.length === 0
      ? undefined
      : `${left.length} containers are left: ${left.map(({ name }) => name).join(', ')}`
  }, withinMs)
}
