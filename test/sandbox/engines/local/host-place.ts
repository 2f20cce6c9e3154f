import { type ChildProcess, type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, copyFileSync, cpSync, linkSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { SandboxReport } from '../../../../src/sandbox/index.ts'
import type { Order } from './child-host.ts'
import { openDirectory } from '../../../support/engines/local/state-dir.ts'

const ROOT = join(import.meta.dirname, '../../../..')
/** The uid of an ordinary user without files on the machine. */
export const ORDINARY = 12_345
/** The reason to skip tests that restrict a host: only root may mount and change to another user. */
export const NEEDS_ROOT: string | undefined = process.getuid?.() === 0 ? undefined : 'it needs root'

/** The answer of a child host to `report`. */
export interface HostReport {
  readonly report: SandboxReport
  readonly result?: { readonly status: string; readonly error: string | null; readonly finalData: unknown }
}

/** The differences between a child host and this process. */
export interface Circumstances {
  readonly uid?: number
  /** The environment, to which a cache of compiled code is added. Default: PATH and HOME. */
  readonly env?: Record<string, string>
  /** A command that finally starts its arguments. */
  readonly wrapper?: readonly string[]
}

/** A copy of node and of the sources that every user can read, for hosts of other users. */
export class HostPlace implements Disposable {
  readonly path: string = openDirectory('host')
  readonly #children: ChildProcess[] = []
  #stateDirs = 0

  constructor() {
    const copy = (name: string): void => cpSync(join(ROOT, name), join(this.path, name), { recursive: true })
    mkdirSync(join(this.path, 'node_modules'))
    for (const name of ['src', 'harness/sandglass_harness', 'harness/etc', 'node_modules/zod', 'package.json'])
      copy(name)
    copy('test/sandbox/engines/local/child-host.ts')
    share(process.execPath, join(this.path, 'node'))
    mkdirSync(join(this.path, 'compiled'))
    chmodSync(join(this.path, 'compiled'), 0o1777)
    mkdirSync(join(this.path, 'home'), { mode: 0o755 })
    if (NEEDS_ROOT === undefined) chownSync(join(this.path, 'home'), ORDINARY, ORDINARY)
  }

  /** A new directory that belongs to the ordinary user. */
  directory(name: string): string {
    const path = join(this.path, 'home', name)
    mkdirSync(path, { mode: 0o755 })
    if (NEEDS_ROOT === undefined) chownSync(path, ORDINARY, ORDINARY)
    return path
  }

  /** A new state directory for a host with this uid; without one, with this process's. */
  stateDir(uid?: number): string {
    const name = `state-${(this.#stateDirs += 1)}`
    if (uid !== undefined) return this.directory(name)
    const path = join(this.path, name)
    mkdirSync(path, { mode: 0o755 })
    return path
  }

  /** A directory for PATH with links to these programs. */
  programs(name: string, links: Readonly<Record<string, string>>): string {
    const path = join(this.path, name)
    mkdirSync(path)
    for (const [link, target] of Object.entries(links)) symlinkSync(target, join(path, link))
    return path
  }

  /** Runs one order to its end and returns the printed values. */
  run<T>(order: Order, given: Circumstances = {}): T[] {
    const [program = '', ...args] = this.#command(order, given)
    const { stdout, stderr, status, error } = spawnSync(program, args, { ...this.#options(given), encoding: 'utf8' })
    if (status !== 0) throw new Error(`the child host ended with ${status}: ${error?.message ?? ''}${stdout}${stderr}`)
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as T)
  }

  report(order: Omit<Order, 'act'> = {}, given: Circumstances = {}): HostReport {
    const [report] = this.run<HostReport>({ act: 'report', ...order }, given)
    if (report === undefined) throw new Error('the child host printed nothing')
    return report
  }

  /** Starts a host that keeps a sandbox; resolves when it has one. */
  async hold(order: Omit<Order, 'act'>, given: Circumstances = {}): Promise<{ id: string; process: ChildProcess }> {
    const child = this.start(order, given)
    for await (const line of createInterface({ input: child.stdout })) {
      return { ...(JSON.parse(line) as { id: string }), process: child }
    }
    throw new Error('the child host ended before it had a sandbox')
  }

  /** Starts the same host without waiting for its sandbox. */
  start(order: Omit<Order, 'act'>, given: Circumstances = {}): ChildProcessByStdio<Writable, Readable, null> {
    const [program = '', ...args] = this.#command({ act: 'hold', ...order }, given)
    const child = spawn(program, args, { ...this.#options(given), stdio: ['pipe', 'pipe', 'inherit'] })
    this.#children.push(child)
    return child
  }

  [Symbol.dispose](): void {
    for (const child of this.#children) child.kill('SIGKILL')
    rmSync(this.path, { recursive: true, force: true })
  }

  #command(order: Order, { wrapper = [] }: Circumstances): string[] {
    const host = join(this.path, 'test/sandbox/engines/local/child-host.ts')
    return [...wrapper, join(this.path, 'node'), '--disable-warning=ExperimentalWarning', host, JSON.stringify(order)]
  }

  #options({ uid, env }: Circumstances): { cwd: string; env: Record<string, string>; uid?: number; gid?: number } {
    const home = uid === undefined ? (process.env['HOME'] ?? '/') : join(this.path, 'home')
    return {
      cwd: this.path,
      env: {
        ...(env ?? { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', HOME: home }),
        // One for each user: Node ignores a cache that it cannot use.
        NODE_COMPILE_CACHE: join(this.path, 'compiled', String(uid ?? 'own')),
      },
      ...(uid === undefined ? {} : { uid, gid: uid }),
    }
  }
}

function share(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to) // another file system
  }
  chmodSync(to, 0o755)
}
