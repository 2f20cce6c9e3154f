import type { Sandbox, SandboxEngine } from '../../src/index.ts'

/** An engine that remembers which sandboxes it made. */
export interface WatchedEngine extends SandboxEngine {
  /** Those of which something may run. */
  readonly living: ReadonlyMap<string, Sandbox>
  /** Those that ended since {@link WatchedEngine.forget} was called last. */
  readonly ended: ReadonlyMap<string, Sandbox>
  /** How many it made so far. */
  readonly made: number
  /** Forgets those that ended, once somebody looked for what they left: an hour of them is no small thing to keep. */
  forget(): void
}

/** Puts the list beside an engine that is otherwise as it is. */
export function watched(engine: SandboxEngine): WatchedEngine {
  const living = new Map<string, Sandbox>()
  const ended = new Map<string, Sandbox>()
  let made = 0
  return {
    name: engine.name,
    report: (options) => engine.report(options),
    close: () => engine.close(),
    async create(spec, options) {
      const sandbox = await engine.create(spec, options)
      made += 1
      living.set(sandbox.id, sandbox)
      void sandbox.closed.then(() => {
        living.delete(sandbox.id)
        ended.set(sandbox.id, sandbox)
      })
      return sandbox
    },
    living,
    ended,
    get made() {
      return made
    },
    forget: () => ended.clear(),
  }
}
