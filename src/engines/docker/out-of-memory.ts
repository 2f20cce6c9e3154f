import type { Ground } from './ground.ts'
import type { ManagedContainer } from './managed-container.ts'

/** Tells containers that the kernel killed something in them for memory: a dead one cannot say it itself. */
export interface OutOfMemoryWatch {
  /** It hears nothing any more, because the daemon ended. */
  readonly isOver: boolean
  add(container: ManagedContainer): void
  close(): void
}

/** A longer line is no event, and its rest is dropped unread. */
const MAX_LINE = 65_536

/** Listens to the daemon's events of this engine's containers; without them, such an end has no cause. */
export function watchOutOfMemory({
  daemon,
  labels,
  since,
}: Pick<Ground, 'daemon' | 'labels' | 'since'>): OutOfMemoryWatch {
  const containers = new Map<string, ManagedContainer>()
  let stop: (() => void) | undefined
  let closed = false
  let isOver = false
  const end = (): void => {
    isOver = true
  }
  const filters = {
    type: ['container' as const],
    event: ['oom'],
    label: Object.entries(labels).map(([name, value]) => `${name}=${value}`),
  }
  // The first container may be there before the daemon listens to this.
  const past = since === undefined ? {} : { since }
  daemon.docker.getEvents({ filters, ...past }).then((stream) => {
    stop = () => (stream as unknown as { destroy(): void }).destroy()
    if (closed) stop()
    let text = ''
    stream.on('data', (chunk: Buffer) => {
      const lines = (text + chunk.toString('latin1')).split('\n')
      text = (lines.pop() ?? '').slice(-MAX_LINE)
      for (const line of lines) containers.get(idOf(line))?.noteOutOfMemory()
    })
    for (const event of ['error', 'end', 'close']) stream.on(event, end)
  }, end)
  return {
    get isOver() {
      return isOver
    },
    add(container) {
      containers.set(container.id, container)
      void container.closed.then(() => containers.delete(container.id))
    },
    close() {
      closed = true
      stop?.()
    },
  }
}

function idOf(line: string): string {
  try {
    return String((JSON.parse(line) as { id?: unknown }).id)
  } catch {
    return ''
  }
}
