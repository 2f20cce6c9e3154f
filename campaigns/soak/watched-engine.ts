import type { Sandbox, SandboxEngine } from '../../src/index.ts'

/** An engine that records its sandboxes. */
export interface WatchedEngine extends SandboxEngine {
  /** Sandboxes that have not ended. */
  readonly living: ReadonlyMap<string, Sandbox>
  /** Sandboxes that ended since the last call of {@link WatchedEngine.forget}. */
  readonly ended: ReadonlyMap<string, Sandbox>
  /** Number of sandboxes made so far. */
  readonly made: number
  /** Forgets ended sandboxes, after the check for their remains. Otherwise the list would grow for hours. */
  forget(): void
}

/** Wraps an engine and records its sandboxes. */
export function watchEngine(engine: SandboxEngine): WatchedEngine {
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
