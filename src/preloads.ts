import { type Environment, importedModules } from './environments/index.ts'

/** The number of recent runs that decide. */
const REMEMBERED = 3
/** The number of these that must have imported a module. */
const NEEDED = 2
const MAX_MODULES = 8
/** The number of runs between two decisions. */
const PERIOD = 20

/** The modules of packages that recent scripts imported: from the third run on, new sandboxes load them ahead. */
export class Preloads {
  /** The modules to load ahead, by the directory of an environment. */
  readonly #ahead = new Map<string, readonly string[]>()
  readonly #habits = new Map<string, { runs: number; readonly last: (readonly string[])[] }>()

  /** The modules that new sandboxes of an environment load ahead. */
  modulesFor(environment: Environment | undefined): readonly string[] {
    return this.#ahead.get(environment?.path ?? '') ?? []
  }

  /** Makes new sandboxes of an environment load these ahead. */
  adopt({ path }: Environment, modules: readonly string[]): void {
    this.#ahead.set(path, modules)
  }

  /**
   * Notes a run that succeeded.
   * @returns the modules to load ahead from now on, if they changed.
   */
  note(environment: Environment, script: string): readonly string[] | undefined {
    const modules = this.#decide(environment, script)
    if (modules === undefined || modules.length === 0) return undefined
    return modules.join() === this.modulesFor(environment).join() ? undefined : modules
  }

  #decide({ key, modules }: Environment, script: string): readonly string[] | undefined {
    const habit = this.#habits.get(key) ?? { runs: 0, last: [] }
    this.#habits.set(key, habit)
    habit.runs += 1
    const known = new Set(modules)
    habit.last.push(importedModules(script).filter((name) => known.has(name.split('.', 1)[0] ?? '')))
    if (habit.last.length > REMEMBERED) habit.last.shift()
    if (habit.runs !== REMEMBERED && habit.runs % PERIOD !== 0) return undefined
    const counts = new Map<string, number>()
    for (const name of habit.last.flat()) counts.set(name, (counts.get(name) ?? 0) + 1)
    const often = [...counts].filter(([, count]) => count >= NEEDED).map(([name]) => name)
    return often.slice(0, MAX_MODULES).toSorted()
  }
}
