import { SandglassError } from '../errors/index.ts'

/** The scripts and programs that run in a workspace. If they can read each other's memory, one with secrets must run alone. */
export class Neighbours {
  readonly #areShared: boolean
  readonly #onLeft: () => void
  readonly #present = new Set<Present>()

  /**
   * @param areShared true if they can read each other's memory.
   * @param onLeft called at the end of each.
   */
  constructor(areShared: boolean, onLeft: () => void) {
    this.#areShared = areShared
    this.#onLeft = onLeft
  }

  /**
   * Adds a script or program. The caller calls the returned function at its end.
   * @param group members of a group are no neighbours: the cells of a session and its branches.
   * @throws SandglassError `secrets_not_separate`
   */
  enter(hasSecrets: boolean, shareSecrets: boolean, group?: object): () => void {
    const one: Present = { isPrivate: hasSecrets && !shareSecrets, group }
    const others = [...this.#present].filter((each) => group === undefined || each.group !== group)
    if (this.#areShared && others.length > 0) {
      if (one.isPrivate) throw notSeparate('another activity of this workspace could read its secrets')
      if (others.some(({ isPrivate }) => isPrivate))
        throw notSeparate('it could read the secrets of another activity of this workspace')
    }
    this.#present.add(one)
    return () => {
      this.#present.delete(one)
      this.#onLeft()
    }
  }
}

interface Present {
  readonly isPrivate: boolean
  readonly group: object | undefined
}

function notSeparate(why: string): SandglassError {
  return new SandglassError(
    'secrets_not_separate',
    `${why}, because this machine cannot keep activities apart (trust is "shared"); wait for its end, use a separate ` +
      'workspace, or allow it with shareSecrets: true on the one with secrets',
  )
}
