import { SandglassError } from '../errors/index.ts'
import type { RestoredState, Session, SessionCheckpoint } from '../index.ts'
import { didYouMean } from '../support/index.ts'

const MAIN = 'main'

/** The session of a REPL with its checkpoints and branches, each by name. */
export class ReplSession implements AsyncDisposable {
  readonly #branches = new Map<string, Session>()
  readonly #checkpoints = new Map<string, { readonly made: SessionCheckpoint; readonly branch: string }>()

  constructor(session: Session) {
    this.#branches.set(MAIN, session)
  }

  /** The names of the branches; `main` is the first. */
  get branches(): readonly string[] {
    return [...this.#branches.keys()]
  }

  /** The names of the checkpoints of a branch, oldest first. */
  checkpointsOf(branch: string): readonly string[] {
    return [...this.#checkpoints].flatMap(([name, kept]) => (kept.branch === branch ? [name] : []))
  }

  /** @throws SandglassError `invalid_request` for an unknown branch. */
  branch(name: string = MAIN): Session {
    return requireNamed(this.#branches, name, 'branch')
  }

  /** Keeps the state under a name. @throws SandglassError as `Session.checkpoint`; `invalid_request` for a name that is in use */
  async checkpoint(branch: string = MAIN, name: string = this.#freeName('c')): Promise<SessionCheckpoint> {
    this.#refuseTaken(name)
    const made = await this.branch(branch).checkpoint(name)
    this.#checkpoints.set(name, { made, branch })
    return made
  }

  /**
   * Goes back to a checkpoint of the branch.
   * @throws SandglassError as `Session.restore`; `invalid_request` for a name that is not there, or is of another branch
   */
  async restore(branch: string = MAIN, name: string): Promise<RestoredState> {
    const session = this.branch(branch)
    const kept = requireNamed(this.#checkpoints, name, 'checkpoint')
    if (kept.branch !== branch) {
      const problem = `the checkpoint ${JSON.stringify(name)} is of the branch ${JSON.stringify(kept.branch)}, not of ${JSON.stringify(branch)}`
      throw new SandglassError('invalid_request', problem)
    }
    return session.restore(kept.made)
  }

  /** Begins a branch with the current state. @throws SandglassError as `Session.branch`; `invalid_request` for a name that is in use */
  async fork(branch: string | undefined, name: string = this.#freeName('b')): Promise<string> {
    this.#refuseTaken(name)
    const [made] = await this.branch(branch).branch(1)
    if (made !== undefined) this.#branches.set(name, made)
    return name
  }

  /** Ends a branch, or a checkpoint of any branch. @throws SandglassError `invalid_request` for `main`, and for an unknown name */
  async drop(name: string): Promise<void> {
    if (name === MAIN) throw new SandglassError('invalid_request', 'main cannot be dropped: it ends with the session')
    const kept = this.#checkpoints.get(name)
    if (kept !== undefined) {
      await this.branch(kept.branch).release(kept.made)
      this.#checkpoints.delete(name)
      return
    }
    const branch = requireNamed(this.#branches, name, 'branch or checkpoint')
    this.#branches.delete(name)
    for (const checkpoint of this.checkpointsOf(name)) this.#checkpoints.delete(checkpoint)
    await branch.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#branches.values()].toReversed().map((branch) => branch.close()))
  }

  #freeName(letter: string): string {
    let number = 1
    while (this.#kindOf(`${letter}${number}`) !== undefined) number += 1
    return `${letter}${number}`
  }

  /** Branches and checkpoints share their names, because `drop` takes both. */
  #refuseTaken(name: string): void {
    const kind = this.#kindOf(name)
    if (kind !== undefined)
      throw new SandglassError('invalid_request', `there is a ${kind} ${JSON.stringify(name)} already`)
  }

  #kindOf(name: string): 'branch' | 'checkpoint' | undefined {
    if (this.#branches.has(name)) return 'branch'
    return this.#checkpoints.has(name) ? 'checkpoint' : undefined
  }
}

function requireNamed<T>(among: ReadonlyMap<string, T>, name: string, what: string): T {
  const value = among.get(name)
  if (value !== undefined) return value
  const hint = didYouMean(name, [...among.keys()])
  throw new SandglassError('invalid_request', `no ${what} ${JSON.stringify(name)}.${hint}`)
}
