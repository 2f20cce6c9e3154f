import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Docker from 'dockerode'
import { skipFor } from './required.ts'
import { DAEMON_PREFIX, removeDaemon, removeOrphans } from './daemon-remains.ts'
import { eventually } from './eventually.ts'
import { processOf } from './processes.ts'

/** The options of a private daemon. */
export interface PrivateDaemonOptions {
  /** Additional runtimes by name, as in daemon.json, such as {@link GVISOR}. */
  readonly runtimes?: Readonly<Record<string, { readonly path: string; readonly runtimeArgs?: readonly string[] }>>
  /** Size of a private file system (a loop device) for all its data. */
  readonly diskBytes?: number
  /** Paths of PEM files: the daemon then also serves 127.0.0.1 by TLS and requires certificates of clients. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string }
  /** Additional flags of dockerd. */
  readonly flags?: readonly string[]
}

/** gVisor as a runtime for {@link PrivateDaemonOptions}; without these arguments it refuses containers without a network. */
export const GVISOR = { runsc: { path: 'runsc', runtimeArgs: ['--platform=ptrace', '--network=none'] } } as const

/** A private dockerd for a test, which shares nothing with the machine's. */
export interface PrivateDaemon extends AsyncDisposable {
  /** For DOCKER_HOST or the option `docker.host`: `unix:///…`. */
  readonly host: string
  /** With `tls`: `tcp://127.0.0.1:…`. */
  readonly tcpHost: string | undefined
  /** The pid of the current or last dockerd. */
  readonly pid: number
  /** A private directory, for example for certificates; removed with the daemon. */
  readonly directory: string
  readonly client: Docker
  /** The output of dockerd so far. */
  log(): string
  /** Copies an image from another daemon, by default the one at DOCKER_HOST or the default socket. */
  load(image: string, from?: Docker): Promise<void>
  /** Ends dockerd, which ends its containers; its images stay. */
  stop(): Promise<void>
  /** Sends SIGKILL to dockerd alone: containers stay alive until it starts again. */
  kill(): Promise<void>
  /** Stops it if it runs, and starts it again with the same addresses and data. */
  restart(): Promise<void>
  /** Ends and removes everything: processes, mounts, control groups, files. */
  close(): Promise<void>
}

const START_MS = 60_000
const STOP_MS = 20_000

/**
 * True when tests with a private daemon must be skipped; prints the reason, or throws where
 * SANDGLASS_TEST_REQUIRE names `docker` (or `gvisor`, with `gvisor: true`).
 */
export function requirePrivateDaemon({ gvisor = false }: { readonly gvisor?: boolean } = {}): {
  readonly skip: boolean
} {
  const name = gvisor ? 'gvisor' : 'docker'
  const reason = findObstacle(gvisor)
  if (reason === undefined) return { skip: false }
  skipFor(name, `no private daemon can be started: ${reason}`)
  return { skip: true }
}

/** Starts a daemon; `await using`, or call `close()` in `afterAll`. */
export async function startDaemon(options: PrivateDaemonOptions = {}): Promise<PrivateDaemon> {
  removeOrphans()
  const directory = mkdtempSync(`${DAEMON_PREFIX}${process.pid}-`)
  const cleanUpAtExit = (): void => removeDaemon(directory)
  process.once('exit', cleanUpAtExit)
  const remove = (): void => {
    process.removeListener('exit', cleanUpAtExit)
    removeDaemon(directory)
  }
  try {
    const daemon = new Daemon(directory, options, remove)
    await daemon.restart()
    return daemon
  } catch (error) {
    remove()
    throw error
  }
}

class Daemon implements PrivateDaemon {
  readonly directory: string
  readonly host: string
  readonly client: Docker
  readonly #options: PrivateDaemonOptions
  readonly #remove: () => void
  #process: ChildProcess | undefined
  #port = 0

  constructor(directory: string, options: PrivateDaemonOptions, remove: () => void) {
    this.directory = directory
    this.#options = options
    this.#remove = remove
    const socketPath = join(directory, 'docker.sock')
    this.host = `unix://${socketPath}`
    this.client = new Docker({ socketPath })
    mkdirSync(join(directory, 'data'))
    mountData(directory, options.diskBytes)
    writeFileSync(join(directory, 'daemon.json'), JSON.stringify({ runtimes: options.runtimes ?? {} }))
  }

  get pid(): number {
    return this.#process?.pid ?? 0
  }

  get tcpHost(): string | undefined {
    return this.#port === 0 ? undefined : `tcp://127.0.0.1:${this.#port}`
  }

  log(): string {
    return readFileSync(join(this.directory, 'log'), 'utf8')
  }

  async load(image: string, from = new Docker()): Promise<void> {
    const archive = await from.getImage(image).get()
    const answer = await this.client.loadImage(archive)
    const told: string[] = []
    for await (const piece of answer) told.push(String(piece))
    if (told.join('').includes('"errorDetail"')) throw new Error(`the daemon did not load ${image}: ${told.join('')}`)
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
    // containerd dies with it. The next dockerd would take its zombie for a running process, because the machine's init may
    // reap it late.
    const pidFile = join(this.directory, 'exec/containerd/containerd.pid')
    const pid = existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) : 0
    await eventually(() => (pid > 0 && processOf(pid) !== undefined ? 'it lives' : undefined), STOP_MS)
    rmSync(pidFile, { force: true })
  }

  async restart(): Promise<void> {
    await this.stop()
    const started = this.#spawn()
    this.#process = started
    const problem = await eventually(async () => {
      if (started.exitCode !== null || started.signalCode !== null) return undefined
      return this.client.ping().then(
        () => this.#portTrouble(),
        (error: unknown) => `it does not answer: ${String(error)}`,
      )
    }, START_MS)
    const dead = started.exitCode !== null || started.signalCode !== null
    if (problem === undefined && !dead) return
    await this.kill()
    throw new Error(`dockerd did not start: ${dead ? 'it ended' : problem}\n${this.log().slice(-3000)}`)
  }

  async close(): Promise<void> {
    await this.stop()
    this.#remove()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Returns a problem until dockerd reports its port, which happens shortly after its socket answers. */
  #portTrouble(): string | undefined {
    if (this.#options.tls === undefined) return undefined
    this.#port ||= Number(/API listen on 127\.0\.0\.1:(\d+)/.exec(this.log())?.[1] ?? 0)
    return this.#port === 0 ? 'it does not tell its port' : undefined
  }

  #spawn(): ChildProcess {
    const at = (name: string): string => join(this.directory, name)
    const { tls, flags = [] } = this.#options
    const secure =
      tls === undefined
        ? []
        : [
            '--tlsverify',
            `--tlscacert=${tls.ca}`,
            `--tlscert=${tls.cert}`,
            `--tlskey=${tls.key}`,
            `--host=tcp://127.0.0.1:${this.#port}`,
          ]
    const own = [
      `--host=${this.host}`,
      `--config-file=${at('daemon.json')}`,
      `--data-root=${at('data')}`,
      `--exec-root=${at('exec')}`,
      `--pidfile=${at('pid')}`,
      // dockerd uses the machine's containerd if there is one.
      `--containerd-namespace=${this.directory.split('/').at(-1)}`,
      '--storage-driver=overlay2',
      '--bridge=none',
      '--iptables=false',
      '--ip-forward=false',
      '--userland-proxy=false',
      '--shutdown-timeout=5',
      '--raw-logs',
    ]
    const log = openSync(at('log'), 'a')
    try {
      // dockerd dies with a killed test runner; the next start of a private daemon removes its remains.
      const wrapper = ['--pdeathsig', 'TERM', '--', 'dockerd']
      return spawn('setpriv', [...wrapper, ...own, ...secure, ...flags], { stdio: ['ignore', log, log] })
    } finally {
      closeSync(log)
    }
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const running = this.#process
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    running.kill(signal)
    const patience = setTimeout(() => running.kill('SIGKILL'), STOP_MS)
    await ended
    clearTimeout(patience)
  }
}

/** The reason why no daemon can be started here; undefined if one can. */
function findObstacle(gvisor: boolean): string | undefined {
  if (process.getuid?.() !== 0) return 'it needs root'
  const programs = ['dockerd', 'setpriv', ...(gvisor ? ['runsc'] : [])]
  const missing = programs.filter((name) => spawnSync('which', [name]).status !== 0)
  return missing.length === 0 ? undefined : `not installed: ${missing.join(', ')}`
}

/** Mounts the data in memory, where images load ten times faster, unless a disk size is given. */
function mountData(directory: string, diskBytes: number | undefined): void {
  const [disk, data] = [join(directory, 'disk'), join(directory, 'data')]
  if (diskBytes === undefined) {
    must('mount', ['-t', 'tmpfs', '-o', 'size=2g,mode=0711', 'sandglass-dockerd', data])
    return
  }
  must('truncate', ['-s', String(diskBytes), disk])
  must('mkfs.ext4', ['-q', '-F', disk])
  must('mount', ['-o', 'loop', disk, data])
}

function must(program: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`)
}
