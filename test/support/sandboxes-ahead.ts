import type { CreateOptions, Sandbox, SandboxEngine, SandboxSpec } from '../../src/sandbox/index.ts'

/**
 * An engine that starts the next sandbox of a spec while a test uses the last one. For a suite that takes them one after the other, from an
 * engine whose sandboxes start in seconds.
 */
export function sandboxesAhead(engine: SandboxEngine): SandboxEngine {
  const ahead = new Map<string, Promise<Sandbox>>()
  const asked = new Set<string>()
  const begin = (key: string, spec: SandboxSpec): void => {
    const next = engine.create(spec)
    next.catch(() => undefined) // told to whoever takes it
    ahead.set(key, next)
  }
  return {
    ...engine,
    async create(spec: SandboxSpec, given: CreateOptions = {}): Promise<Sandbox> {
      // A test aborts this start.
      const isWatched = given.signal !== undefined && given.onWaiting === undefined && spec.activities !== true
      if (isWatched) return engine.create(spec, given)
      const key = JSON.stringify(spec)
      const ready = ahead.get(key)
      const sandbox = await (ready ?? engine.create(spec, given))
      // One that is asked for twice is asked for again.
      if (asked.has(key)) begin(key, spec)
      asked.add(key)
      return sandbox
    },
    async close() {
      for (const next of ahead.values()) await (await next.catch(() => undefined))?.destroy()
      await engine.close()
    },
  }
}
