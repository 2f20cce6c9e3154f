import type { InstallProgress } from '../environments/index.ts'
import { type Context, supportsAnsi } from './context.ts'
import { plural } from './figures.ts'
import { LiveLine } from './live-line.ts'

const BAR = 24

/** A status line while packages are installed, on a terminal. */
export class InstallLine implements AsyncDisposable {
  readonly #context: Context
  readonly #draws: boolean
  #live: LiveLine | undefined
  #progress: InstallProgress | undefined
  #isEnded = false

  /** @param options.draws false if another status line shows {@link text}: a terminal has room for one. */
  constructor(context: Context, { draws = true }: { readonly draws?: boolean } = {}) {
    this.#context = context
    this.#draws = draws
  }

  /** The line; undefined while nothing is installed. */
  get text(): string | undefined {
    return this.#progress === undefined ? undefined : textOf(this.#progress)
  }

  readonly onProgress = (progress: InstallProgress): void => {
    if (this.#isEnded) return
    this.#progress = progress.phase === 'done' ? undefined : progress
    if (this.#progress === undefined) void this.#clear()
    else if (this.#draws)
      this.#live ??= new LiveLine(this.#context.stderr, supportsAnsi(this.#context), () => this.text ?? '')
  }

  /** Clears the line. Nothing is shown afterwards. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true
    this.#progress = undefined
    await this.#clear()
  }

  async #clear(): Promise<void> {
    const live = this.#live
    this.#live = undefined
    await live?.end()
  }
}

function textOf(progress: InstallProgress): string {
  if (progress.phase === 'installer') return 'downloading uv, which installs packages'
  if (progress.phase === 'resolve') return 'choosing versions of packages'
  const { packages, bytes, totalBytes } = progress
  const full = totalBytes === 0 ? 0 : Math.round((bytes / totalBytes) * BAR)
  const sizes = `${(bytes / 1e6).toFixed(1)} of ${(totalBytes / 1e6).toFixed(1)} MB`
  return `installing ${plural(packages, 'package')} [${'#'.repeat(full)}${'.'.repeat(BAR - full)}] ${sizes}`
}
