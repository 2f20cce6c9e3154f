import { join } from 'node:path'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { eventually } from '../support/eventually.ts'
import { type ChaosHost, startChaosHost } from './host.ts'
import type { Site } from './site.ts'

const LIBRARIES = ['/usr/lib/x86_64-linux-gnu/faketime', '/usr/lib/aarch64-linux-gnu/faketime']
const CLOSE_MS = 30_000
const CLEAN_MS = 5000

/** Debian's library that shows a process another time; undefined where it is not installed. */
export function faketimeLibrary(): string | undefined {
  return LIBRARIES.map((path) => join(path, 'libfaketime.so.1')).find((path) => existsSync(path))
}

/** Hosts one after the other on one site: a new one where the last is gone, or is not of the kind that is wanted. */
export class Lane implements AsyncDisposable {
  readonly site: Site
  readonly clockFile: string
  #host: ChaosHost | undefined
  #faked = false

  constructor(site: Site) {
    this.site = site
    this.clockFile = join(site.disk.path, '..', 'clock')
  }

  /**
   * A host that is open.
   * @throws Error when the last one left something, or none can be opened.
   */
  async host(faked: boolean): Promise<ChaosHost> {
    const current = this.#host
    // A clock that was set is a host's for good.
    if (current !== undefined && !current.isGone() && !faked && !this.#faked) return current
    await this.end()
    this.#faked = faked
    const host = startChaosHost(this.site.engine, {
      // Mounts of its own, in which faults can be made.
      prefix: ['unshare', '--mount', ...(faked ? ['env', ...this.#fakedClock()] : [])],
      env: { TMPDIR: this.site.temporary },
    })
    this.#host = host
    const { said } = await host.ask('open')
    if (said === 'opened') return host
    this.#host = undefined
    host.signal('SIGKILL')
    await host.gone
    throw new Error(`no host could be opened: ${said} ${host.words()}`)
  }

  /**
   * Closes the host that there is.
   * @throws Error naming what it left behind.
   */
  async end(): Promise<void> {
    const host = this.#host
    this.#host = undefined
    if (host === undefined || host.isGone()) return
    const patience = setTimeout(() => host.signal('SIGKILL'), CLOSE_MS)
    const { said } = await host.ask('close')
    clearTimeout(patience)
    host.signal('SIGKILL')
    await host.gone
    this.#removeFakedClock(host.pid)
    if (said !== 'done') throw new Error(`the host did not close: ${said} ${host.words()}`)
    const left = await eventually(async () => {
      const found = await this.site.left(undefined)
      return found.length === 0 ? undefined : found.join('; ')
    }, CLEAN_MS)
    if (left !== undefined) throw new Error(`left by a host that was closed: ${left}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.end()
    } finally {
      await this.site[Symbol.asyncDispose]()
    }
  }

  /** The wall clock alone: what the kernel calls monotonic is not moved by whoever sets a machine's clock either. */
  #fakedClock(): string[] {
    const library = faketimeLibrary()
    if (library === undefined) throw new Error("Debian's faketime is not installed")
    writeFileSync(this.clockFile, '+0')
    return [
      `LD_PRELOAD=${library}`,
      `FAKETIME_TIMESTAMP_FILE=${this.clockFile}`,
      'FAKETIME_NO_CACHE=1',
      'FAKETIME_DONT_FAKE_MONOTONIC=1',
      'DONT_FAKE_MONOTONIC=1',
    ]
  }

  /** What the library of faketime leaves in memory when its process is killed. */
  #removeFakedClock(pid: number): void {
    for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
      rmSync(join('/dev/shm', name), { force: true })
  }
}
