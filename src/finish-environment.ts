import {
  addByteCode,
  addHomeFiles,
  COMPILE_SCRIPT,
  type Environment,
  hasHomeFiles,
  HOME_SCRIPTS,
  isFinished,
  type MadeFile,
  markFinished,
  type Source,
  sourcesWithoutByteCode,
} from './environments/index.ts'
import { ExecutionMode, type ExecutionResult, ScriptExecutor } from './executor/index.ts'
import { INSIDE, type SandboxEngine, type SandboxSpec } from './sandbox/index.ts'

/** Bytes of source that one run compiles. A run takes about 0.3 s, and its byte code is kept even if the host ends after it. */
const BATCH_BYTES = 0.5 * 1024 * 1024
const BATCH_FILES = 1000
const TIMEOUT_SEC = 60
const OUTPUT = 'out/*'

/** Finishes environments while scripts run, each once, one after the other. */
export class Finisher {
  readonly #engine: SandboxEngine
  readonly #signal: AbortSignal
  readonly #onFinished: (path: string) => void
  /** Keyed by directory, because an environment that is installed again gets another one. */
  readonly #works = new Map<string, Promise<void>>()
  /** Settles when all work that was started has ended. */
  ended: Promise<void> = Promise.resolve()

  /** @param onFinished is called when files were added to the environment in this directory, and no more will be. */
  constructor(engine: SandboxEngine, signal: AbortSignal, onFinished: (path: string) => void) {
    this.#engine = engine
    this.#signal = signal
    this.#onFinished = onFinished
  }

  /** Never rejects: only the speed of imports depends on it. */
  finish(environment: Environment, limits: SandboxSpec['limits']): Promise<void> {
    const { path } = environment
    const known = this.#works.get(path)
    if (known !== undefined) return known
    const spec = { limits, packages: path }
    const finish = async (): Promise<void> => {
      if (isFinished(path)) return
      await finishEnvironment(environment, this.#engine, spec, this.#signal)
      if (isFinished(path)) this.#onFinished(path)
    }
    const work = this.ended.then(finish).catch(() => {})
    this.#works.set(path, work)
    this.ended = work
    return work
  }
}

/**
 * Makes the byte code of an environment, and the files that its packages need in the home directory, in a sandbox where it is mounted
 * read-only. The first imports are several times faster afterwards. Files that were made before an abort are kept.
 */
async function finishEnvironment(
  environment: Environment,
  engine: SandboxEngine,
  spec: SandboxSpec,
  signal: AbortSignal,
): Promise<void> {
  const { path, target, modules } = environment
  await using sandbox = await engine.create(spec, { signal, background: true })
  const executor = new ScriptExecutor({
    mode: ExecutionMode.INTERACTIVE,
    limits: { executionTimeoutSec: TIMEOUT_SEC },
  })
  const run = (
    script: string,
    collect: readonly string[],
    inputs: Record<string, unknown> = {},
  ): Promise<ExecutionResult> => executor.run({ sandbox, script, inputs, collect, signal })

  for (const batch of batchesOf(await sourcesWithoutByteCode(path, target))) {
    const result = await run(COMPILE_SCRIPT, [OUTPUT], { root: INSIDE.packages, paths: batch.map((one) => one.path) })
    if (signal.aborted || result.status === 'sandbox-lost') return
    for (const { content } of result.files) await addByteCode(path, batch, content, target)
  }
  // After the byte code, because these scripts import packages, and byte code makes imports several times as fast.
  const homeFiles: MadeFile[] = []
  for (const { module, script, collect } of hasHomeFiles(path) ? [] : HOME_SCRIPTS) {
    if (!modules.includes(module)) continue
    const paths = collect.map((pattern) => `home/${pattern}`)
    const { files, errorKind, status } = await run(script, paths)
    if (signal.aborted || status === 'sandbox-lost') return
    // A failed script may have left an incomplete set.
    if (errorKind !== null) continue
    homeFiles.push(...files.map((file) => ({ path: file.path.replace(/^home\//, ''), content: file.content })))
  }
  await addHomeFiles(path, homeFiles)
  if (!signal.aborted) await markFinished(path)
}

function batchesOf(sources: readonly Source[]): Source[][] {
  const batches: Source[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const source of sources) {
    const last = batches.at(-1)
    if (last === undefined || last.length >= BATCH_FILES || bytes + source.bytes > BATCH_BYTES) {
      batches.push([source])
      bytes = source.bytes
    } else {
      last.push(source)
      bytes += source.bytes
    }
  }
  return batches
}
