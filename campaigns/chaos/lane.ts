import { join } from 'node:path'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { eventually } from '../../test/support/eventually.ts'
import { type ChaosHost, startChaosHost } from './host.ts'
import type { Site } from './site.ts'

const LIBRARIES = ['/usr/lib/x86_64-linux-gnu/faketime', '/usr/lib/aarch64-linux-gnu/faketime']
const CLOSE_MS = 30_000
const CLEAN_MS = 5000

/** Path of the faketime library of Debian, which changes the time of a process; undefined when it is not installed. */
export function faketimeLibrary(): string | undefined {
  return LIBRARIES.map((path) => join(path, 'libfaketime.so.1')).find((path) => existsSync(path))
}

/** Runs one host at a time on a site, and replaces a host that is gone or has the wrong clock. */
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
   * Returns an open host.
   * @throws Error when the previous host left orphans, or when a new one does not open.
   */
  async host(faked: boolean): Promise<ChaosHost> {
    const current = this.#host
    // A host keeps a changed clock, so it cannot be used again.
    if (current !== undefined && !current.isGone() && !faked && !this.#faked) return current
    await this.end()
    this.#faked = faked
    const host = startChaosHost(this.site.engine, {
      // A private mount namespace, in which faults can change mounts.
      prefix: ['unshare', '--mount', ...(faked ? ['env', ...this.#fakedClock()] : [])],
      env: { TMPDIR: this.site.temporary },
    })
    this.#host = host
    const { said } = await host.ask('open')
    if (said === 'opened') return host
    this.#host = undefined
    host.signal('SIGKILL')
    await host.gone
    throw new Error(`no host could be opened: ${said} ${host.stderr()}`)
  }

  /**
   * Closes the current host.
   * @throws Error with the names of its orphans.
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
    if (said !== 'done') throw new Error(`the host did not close: ${said} ${host.stderr()}`)
    const left = await eventually(async () => {
      const found = await this.site.left(undefined)
      return found.length === 0 ? undefined : found.join('; ')
    }, CLEAN_MS)
    if (left !== undefined) throw new Error(`a closed host left orphans: ${left}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.end()
    } finally {
      await this.site[Symbol.asyncDispose]()
    }
  }

  /** Fakes only the wall clock, because setting the clock of a machine does not change the monotonic clock either. */
  #fakedClock(): string[] {
    const library = faketimeLibrary()
    if (library === undefined) throw new Error('the faketime library is not installed; run: apt-get install faketime')
    writeFileSync(this.clockFile, '+0')
    return [
      `LD_PRELOAD=${library}`,
      `FAKETIME_TIMESTAMP_FILE=${this.clockFile}`,
      'FAKETIME_NO_CACHE=1',
      'FAKETIME_DONT_FAKE_MONOTONIC=1',
      'DONT_FAKE_MONOTONIC=1',
    ]
  }

  /** Removes the shared memory that the faketime library leaves when its process is killed. */
  #removeFakedClock(pid: number): void {
    for (const name of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`])
      rmSync(join('/dev/shm', name), { force: true })
  }
}
