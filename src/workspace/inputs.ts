import { SandglassError } from '../errors/index.ts'
import { INSIDE } from '../sandbox/index.ts'
import {
  changeableError,
  checkInput,
  type CheckedInput,
  type InputOptions,
  sendInput,
  mountInput,
  takenError,
  type WorkspaceInput,
} from './add-input.ts'
import type { Link } from './link.ts'
import { statFile } from './list-files.ts'
import { removePath } from './change-paths.ts'

/** The workspace that receives inputs. */
interface InputsContext {
  readonly engine: string
  /** The directory of the host that is mounted as its inputs; undefined if they are copied into it. */
  readonly inputsDir: string | undefined
  /** @throws SandglassError `workspace_closed`, `sandbox_busy` */
  open(): Link
  /** Called when its files have changed. */
  changed(): void
}

/** Adds files and directories of the host to a workspace: mounts them if the engine can, else copies them. */
export class Inputs {
  readonly #context: InputsContext
  /** Paths of inputs that are being copied. */
  readonly #sending = new Set<string>()

  constructor(context: InputsContext) {
    this.#context = context
  }

  async add(name: string, path: string, options: InputOptions): Promise<WorkspaceInput> {
    const { readOnly = false, replace = false, noLinks = false, signal } = options
    const input = await checkInput(name, path, signal, noLinks)
    const link = this.#context.open()
    using _call = link.use()
    const { inputsDir, engine } = this.#context
    if (inputsDir === undefined) {
      if (readOnly) throw changeableError(engine)
      return await this.#send(link, input, replace, signal)
    }
    const ended = new AbortController()
    const forget = link.onEnd((error) => ended.abort(error))
    try {
      const signals = [ended.signal, ...(signal === undefined ? [] : [signal])]
      return await mountInput(inputsDir, input, AbortSignal.any(signals), { replace })
    } finally {
      forget()
    }
  }

  async #send(
    link: Link,
    input: CheckedInput,
    replace: boolean,
    signal: AbortSignal | undefined,
  ): Promise<WorkspaceInput> {
    const inside = `inputs/${input.name}`
    const isPresent = this.#sending.has(inside) || (await exists(link, inside, signal))
    if (isPresent && !(replace && !this.#sending.has(inside))) throw takenError(input.name)
    this.#sending.add(inside)
    try {
      if (isPresent) await removePath(link, inside, { recursive: true, signal })
      const sent = await sendInput(link, inside, input, signal)
      return { path: `${INSIDE.workspace}/${inside}`, ...sent }
    } finally {
      this.#sending.delete(inside)
      this.#context.changed()
    }
  }
}

async function exists(link: Link, path: string, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await statFile(link, path, signal)
    return true
  } catch (error) {
    if (error instanceof SandglassError && error.code === 'path_not_found') return false
    throw error
  }
}
