import type { InstallProgress } from '../environments/index.ts'
import { type Context, isLively } from './context.ts'
import { plural } from './figures.ts'
import { LiveLine } from './live-line.ts'

const BAR = 24

/** A status line while packages are installed, on a terminal. */
export class InstallLine implements AsyncDisposable {
  readonly #context: Context
  #live: LiveLine | undefined
  #progress: InstallProgress | undefined

  constructor(context: Context) {
    this.#context = context
  }

  readonly onProgress = (progress: InstallProgress): void => {
    this.#progress = progress
    if (progress.phase === 'done') void this[Symbol.asyncDispose]()
    else this.#live ??= new LiveLine(this.#context.stderr, isLively(this.#context), () => textOf(this.#progress))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const live = this.#live
    this.#live = undefined
    await live?.end()
  }
}

function textOf(progress: InstallProgress | undefined): string {
  if (progress === undefined || progress.phase === 'done') return ''
  if (progress.phase === 'installer') return 'downloading uv, which installs packages'
  if (progress.phase === 'resolve') return 'choosing versions of packages'
  const { packages, bytes, totalBytes } = progress
  const full = totalBytes === 0 ? 0 : Math.round((bytes / totalBytes) * BAR)
  const sizes = `${(bytes / 1e6).toFixed(1)} of ${(totalBytes / 1e6).toFixed(1)} MB`
  return `installing ${plural(packages, 'package')} [${'#'.repeat(full)}${'.'.repeat(BAR - full)}] ${sizes}`
}
