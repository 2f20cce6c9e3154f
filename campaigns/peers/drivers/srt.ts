import { spawn } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { type Peer, serve } from './serve.ts'

/** The part of `@anthropic-ai/sandbox-runtime` that is used here. */
interface Runtime {
  readonly SandboxManager: {
    initialize(config: unknown): Promise<void>
    wrapWithSandbox(command: string): Promise<string>
    cleanupAfterCommand?(): void
    reset(): Promise<void>
  }
}

/** The defaults of `srt` without a settings file: no network, reads everywhere, no writes but its default paths. */
const DEFAULTS = {
  network: { allowedDomains: [], deniedDomains: [] },
  filesystem: { denyRead: [], allowWrite: [], denyWrite: [] },
}

/** Drives Anthropic's sandbox-runtime: `srt.ts MODULE PYTHON`. It makes a command line; its caller spawns it. */
async function main(): Promise<void> {
  const [module = '', python = 'python3'] = process.argv.slice(2)
  const { SandboxManager: manager } = (await import(pathToFileURL(module).href)) as Runtime
  const peer: Peer = {
    async open(seconds) {
      await manager.initialize(DEFAULTS)
      return {
        run: async (code) => {
          const command = await manager.wrapWithSandbox(`${python} -c ${quoted(code)}`)
          const text = await output(command, seconds)
          manager.cleanupAfterCommand?.()
          return text
        },
        close: () => manager.reset(),
      }
    },
  }
  await serve(peer)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** srt has no limit for a run; the caller has the one of `child_process`. */
function output(command: string, seconds: number | undefined): Promise<string> {
  return new Promise((resolve, reject) => {
    const limit = seconds === undefined ? {} : { timeout: seconds * 1000 }
    const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'], ...limit })
    let [out, said] = ['', '']
    child.stdout.on('data', (piece: Buffer) => (out += piece.toString()))
    child.stderr.on('data', (piece: Buffer) => (said += piece.toString()))
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      // A process that still holds the pipes must not delay the answer.
      if (signal !== null) reject(new Error(`ended by ${signal}`))
    })
    child.once('close', (code) => {
      if (code === 0) resolve(out)
      else reject(new Error(said.trim().split('\n').at(-1) ?? `exit code ${code}`))
    })
  })
}

await main()
