import { messageOf } from '../../errors/index.ts'
import { type Daemon, statusOf } from './daemon.ts'

/** Removes a container in any state. Resolves to false if it may still exist. Never rejects. */
export async function discard(daemon: Daemon, idOrName: string): Promise<boolean> {
  const container = daemon.docker.getContainer(idOrName)
  const remove = (): Promise<unknown> =>
    daemon.call('remove a container', (abortSignal) => container.remove({ force: true, v: true, abortSignal }))
  try {
    await remove()
    return true
  } catch (error) {
    if (isUnknown(error)) return true
    if (!isPaused(error)) return false
  }
  try {
    await daemon.call('unpause a container', (abortSignal) => container.unpause({ abortSignal }))
    await remove()
    return true
  } catch (error) {
    return isUnknown(error)
  }
}

/** True if a daemon refused because the container is gone or is being removed. */
export function isGone(error: unknown): boolean {
  return isUnknown(error) || /already in progress|is not running/i.test(messageOf(error))
}

/**
 * True if a daemon refused because there is no such container. A removal in progress may still fail, for example if the
 * daemon is killed.
 */
export function isUnknown(error: unknown): boolean {
  return hasStatus(error, 404) || /no such container/i.test(messageOf(error))
}

/** True if a daemon refused because the container is paused. */
export function isPaused(error: unknown): boolean {
  return /paused/i.test(messageOf(error))
}

function hasStatus(error: unknown, status: number): boolean {
  return statusOf(error) === status || (error instanceof Error && statusOf(error.cause) === status)
}
