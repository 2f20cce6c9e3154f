import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { promisify } from 'node:util'
import {
  awaitReady,
  type Channel,
  ChunkQueue,
  type CreateOptions,
  type Ending,
  failedChecks,
  harnessConfig,
  packHarness,
  PYTHON_FLAGS,
  reportOfProbe,
  type Sandbox,
  type SandboxEngine,
  SandglassError,
  type SandboxReport,
  type SandboxSpec,
  scratchSizes,
} from '../../src/engine.ts'

const UID = 20_000
const ENFORCED = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall'] as const

interface CliEngineOptions {
  /** `docker`, `podman` or `nerdctl`. */
  readonly program: string
  readonly image: string
  /** A private network that the host can reach as well. Default: none. */
  readonly network?: string
}

/** Sandboxes are containers that a command line starts. */
export function cliEngine({ program, image, network = 'none' }: CliEngineOptions): SandboxEngine {
  const access = network === 'none' ? 'none' : 'open'
  const create = async (spec: SandboxSpec, { signal }: CreateOptions = {}): Promise<Sandbox> => {
    if (spec.packages !== undefined || spec.toolsDir !== undefined)
      throw new SandglassError('feature_unavailable', `the engine ${program} has no packages and no toolsDir`)
    const harness = packHarness()
    const id = randomUUID()
    const place = ['--name', id, '--network', network]
    const args = containerArgs(spec, place, image, harness.program)
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    const { channel, closed, destroy, lastOutput } = sandboxProcess(child)
    try {
      channel.send(harness.bytes).catch(() => undefined) // a program that ended says why in its last output
      const ready = await awaitReady(channel, { timeoutMs: 30_000, lastOutput, ...(signal ? { signal } : {}) })
      const failed = failedChecks(access === 'none' ? ready.checks : { ...ready.checks, interfaces: 'lo' })
      if (failed.length > 0) throw new SandglassError('sandbox_setup_failed', failed.join('; '))
      return {
        id,
        info: {
          engine: program,
          level: 'container',
          python: ready.python,
          network: access,
          ...(access === 'none' ? {} : { address: await addressOf(program, id) }),
          limitsEnforced: ENFORCED,
          limits: spec.limits,
        },
        channel,
        ready,
        closed,
        memoryKills: () => 0, // the harness counts them
        destroy,
        [Symbol.asyncDispose]: destroy,
      }
    } catch (error) {
      await destroy()
      throw error
    }
  }
  return {
    name: program,
    create,
    report: () => reportOfProbe({ engine: program, create, found: (sandbox) => reportOf(sandbox), remedies: {} }),
    close: () => Promise.resolve(),
  }
}

async function addressOf(program: string, id: string): Promise<string> {
  const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}'
  const { stdout } = await promisify(execFile)(program, ['inspect', '--format', format, id])
  return stdout.trim()
}

/** One measure a line; the harness checks them from inside. */
function containerArgs(
  { limits, preload = [], checker = false }: SandboxSpec,
  place: string[],
  image: string,
  code: string,
): string[] {
  const { workspace, tmp, varTmp, shm } = scratchSizes(limits.diskBytes)
  const config = harnessConfig({
    limits,
    packages: false,
    toolsDir: false,
    preload,
    checker,
    boundsAddressSpace: false, // the container holds the sandbox as a whole
  })
  const scratch = { '/workspace': workspace, '/tmp': tmp, '/var/tmp': varTmp, '/dev/shm': shm }
  const mounts = Object.entries(scratch).map(([path, size]) => {
    const mode = path === '/workspace' ? '0755' : '1777'
    return ['--tmpfs', `${path}:rw,exec,nosuid,nodev,size=${size},mode=${mode},uid=${UID},gid=${UID}`]
  })
  return [
    ['run', '--interactive', '--rm', '--log-driver', 'none', '--pull', 'never'],
    [...place, '--hostname', 'sandbox'],
    ['--user', `${UID}:${UID}`, '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    ['--memory', `${limits.memoryBytes}`, '--memory-swap', `${limits.memoryBytes}`],
    ['--cpus', `${limits.cpus}`, '--pids-limit', `${limits.pids}`],
    ['--read-only', ...mounts.flat(), '--tmpfs', '/dev/mqueue:ro,size=4096'],
    ['--entrypoint', 'python3', image, ...PYTHON_FLAGS, '-c', code, config],
  ].flat()
}

/** A channel over the standard streams of a process, whose end is the end of the sandbox. */
function sandboxProcess(child: ChildProcess): Pick<Sandbox, 'channel' | 'closed' | 'destroy'> & {
  readonly lastOutput: () => string
} {
  const [input, output, errors] = child.stdio as unknown as [Writable, Readable, Readable]
  const chunks = new ChunkQueue()
  let words = ''
  let isDestroyed = false
  input.on('error', () => {}) // the end of the process says why
  output.on('data', (chunk: Uint8Array) => {
    chunks.put(chunk)
    if (chunks.holds) output.pause() // a script that floods fills its own pipe
  })
  output.once('close', () => chunks.end())
  errors.on('data', (chunk: Uint8Array) => (words = `${words}${String(chunk)}`.slice(-4096)))
  const closed = new Promise<Ending>((resolve) => {
    child.once('error', (error) => (words += error.message))
    child.once('close', (exitCode, signal) => {
      chunks.end()
      resolve(
        isDestroyed
          ? { cause: 'destroyed', exitCode: null, signal: null, by: 'host' }
          : { cause: 'exit', exitCode, signal, by: 'unknown', message: words },
      )
    })
  })
  const channel: Channel = {
    receive() {
      const chunk = chunks.take()
      if (chunks.isAwaited) output.resume()
      return chunk
    },
    send: (bytes) =>
      new Promise((resolve, reject) => {
        input.write(bytes, (error) => (error ? reject(error) : resolve()))
      }),
    close: () => void input.destroy(),
  }
  const destroy = async (): Promise<void> => {
    isDestroyed = true
    channel.close() // the harness ends everything when its input ends, and the container with it
    output.resume()
    await closed
  }
  return { channel, closed, destroy, lastOutput: () => words }
}

function reportOf({ info }: Sandbox): SandboxReport {
  const { engine, level, limitsEnforced, network, python } = info
  const capabilities = {
    processes: true,
    threads: true,
    preload: true,
    packages: false,
    toolsDir: false,
    systemCallFilter: true,
    uidPerSandbox: false,
  }
  const probes = { python_version: python }
  return { engine, usable: true, level, reasons: [], limitsEnforced, network, capabilities, probes }
}
