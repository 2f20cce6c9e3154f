import { type Container, containers } from '../../support/containers.ts'
import { eventually } from '../../support/eventually.ts'

/** Containers that this process made and that exist, in whatever state. */
export function ownContainers(daemon?: string): Container[] {
  return containers(daemon).filter(({ owner }) => owner === process.pid)
}

/** Waits until there is none; what is left, in words. */
export function noneLeft(daemon?: string, withinMs = 5000): Promise<string | undefined> {
  return eventually(() => {
    const left = ownContainers(daemon)
    return left.length === 0
      ? undefined
      : `${left.length} containers are left: ${left.map(({ name }) => name).join(', ')}`
  }, withinMs)
}
