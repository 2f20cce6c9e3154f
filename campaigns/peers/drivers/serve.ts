import { createInterface } from 'node:readline'

/** A driver's answer to one request, a line of JSON; `main.py` answers in the same form. */
export interface Answer {
  /** The output of the script. */
  readonly text?: string
  /** The peer's error message for a failed run. */
  readonly error?: string
  /** The caller's waiting time. */
  readonly ms?: number
  /** The reason why the peer lacks the feature. */
  readonly absent?: string
  /** The driver itself failed. */
  readonly trouble?: string
}

/** One sandbox, kernel or executor of a peer, as it is reused by default. */
export interface Session {
  /** The output of the script. @throws Error when the script fails. */
  run(code: string): Promise<string>
  /** The same with `add(a, b)`, a function of this process; without it, scripts have no tools. */
  readonly runWithTools?: (code: string) => Promise<string>
  close(): Promise<void>
}

/** A peer, driven from Node. */
export interface Peer {
  /** Makes a session whose runs have this limit in seconds, or the peer's default. */
  open(seconds: number | undefined): Promise<Session>
}

interface Request {
  readonly op: string
  readonly code?: string
  readonly seconds?: number
}

/** Answers requests on standard input until it ends. */
export async function serve(peer: Peer): Promise<void> {
  let session: Session | undefined
  const opened = (): Session => {
    if (session === undefined) throw new Error('open first')
    return session
  }
  const operations: Record<string, (request: Request) => Promise<Answer>> = {
    open: async () => {
      session = await peer.open(undefined)
      return {}
    },
    run: ({ code = '' }) => timedRun(() => opened().run(code)),
    cold: async ({ code = '' }) => {
      const start = performance.now()
      const fresh = await peer.open(undefined)
      const answer = await timedRun(() => fresh.run(code))
      const ms = performance.now() - start
      await fresh.close()
      return { ...answer, ms }
    },
    tool: ({ code = '' }) => {
      const { runWithTools } = opened()
      return runWithTools === undefined ? Promise.resolve({ absent: 'none' }) : timedRun(() => runWithTools(code))
    },
    deadline: async ({ code = '', seconds = 1 }) => {
      const limited = await peer.open(seconds)
      await timedRun(() => limited.run('print(1)'))
      return timedRun(() => limited.run(code))
    },
    close: async () => {
      await opened().close()
      return {}
    },
  }
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line) as Request
    const answer = await (operations[request.op]?.(request) ?? Promise.resolve({ trouble: `no ${request.op}` })).catch(
      (error: unknown): Answer => ({ trouble: String(error) }),
    )
    process.stdout.write(`${JSON.stringify(answer)}\n`)
  }
  process.exit(0)
}

async function timedRun(run: () => Promise<string>): Promise<Answer> {
  const start = performance.now()
  const outcome = await run().then(
    (text): Answer => ({ text }),
    (error: unknown): Answer => ({ error: String(error) }),
  )
  return { ...outcome, ms: performance.now() - start }
}
