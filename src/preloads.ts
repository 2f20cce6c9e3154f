import { type Environment, importedModules } from './environments/index.ts'

/** Runs that decide. */
const REMEMBERED = 3
/** Of these, so many must have imported a module. */
const NEEDED = 2
const MAX_MODULES = 8
/** The decision is made again after so many runs. */
const PERIOD = 20

/** The modules of packages that recent scripts imported: from the third run on, new sandboxes load them ahead. */
export class Preloads {
  /** The modules in force, by the directory of an environment. */
  readonly #ahead = new Map<string, readonly string[]>()
  readonly #habits = new Map<string, { runs: number; readonly last: (readonly string[])[] }>()

  /** The modules that new sandboxes of an environment load ahead. */
  modulesFor(environment: Environment | undefined): readonly string[] {
    return this.#ahead.get(environment?.path ?? '') ?? []
  }

  /** Has new sandboxes of an environment load these ahead. */
  adopt({ path }: Environment, modules: readonly string[]): void {
    this.#ahead.set(path, modules)
  }

  /**
   * Notes a run that went well.
   * @returns other modules than those in force, when it is time to change over to them.
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
