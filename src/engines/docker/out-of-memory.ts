import type { EngineEnvironment } from './environment.ts'
import type { ManagedContainer } from './managed-container.ts'

/** Reports OOM kills to the containers in which they happened: a dead container cannot report one itself. */
export interface OutOfMemoryWatch {
  /** True if it receives no more events, because the daemon ended. */
  readonly isOver: boolean
  add(container: ManagedContainer): void
  close(): void
}

/** A longer line is not an event; the rest of it is skipped. */
const MAX_LINE = 65_536

/** Listens to the daemon's OOM events of this engine's containers. Without them, the cause of such an end is unknown. */
export function watchOutOfMemory({
  daemon,
  labels,
  since,
}: Pick<EngineEnvironment, 'daemon' | 'labels' | 'since'>): OutOfMemoryWatch {
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
  // The first container may exist before the daemon serves this request.
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
