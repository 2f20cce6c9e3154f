import { type Environment, importedModules } from './environments/index.ts'

/** The number of recent runs that are considered. */
const REMEMBERED = 3
/** The number of these that must have used a module. */
const NEEDED = 2
const MAX_MODULES = 8
/** The number of runs between two decisions. */
const PERIOD = 20
/** The maximum number of modules of an environment, and of sets of them, that are not tried again. */
const MAX_REFUSED = 1000

/** The recent runs of an environment, and the modules that they used. */
interface Habit {
  runs: number
  /** The modules that each of the last runs used. */
  readonly last: (readonly string[])[]
  /** Modules that a run loaded although no line of its script imports them, such as those that a package loads on demand. */
  readonly hidden: Set<string>
  /** Modules that could not be preloaded. */
  readonly refused: Set<string>
  /** Sets of modules with which a sandbox failed to start. */
  readonly failed: Set<string>
}

/** A run that succeeded. */
export interface FinishedRun {
  readonly script: string
  /** The modules that it loaded, as the sandbox reports them. */
  readonly imported: readonly string[]
}

/** The modules of packages that recent scripts used. From the third run on, new sandboxes preload them. */
export class Preloads {
  /** The modules to preload, by the directory of an environment. */
  readonly #ahead = new Map<string, readonly string[]>()
  readonly #habits = new Map<string, Habit>()

  /** The modules that new sandboxes of an environment preload. */
  modulesFor(environment: Environment | undefined): readonly string[] {
    return this.#ahead.get(environment?.path ?? '') ?? []
  }

  /** Makes new sandboxes of an environment preload these modules. */
  adopt({ path }: Environment, modules: readonly string[]): void {
    this.#ahead.set(path, modules)
  }

  /** Never proposes these modules again, because a sandbox could not preload them. */
  refuse(environment: Environment, modules: readonly string[]): void {
    const { refused } = this.#habitOf(environment)
    for (const name of modules) if (refused.size < MAX_REFUSED) refused.add(name)
  }

  /** Never proposes this set again, because no sandbox started with it. */
  giveUp(environment: Environment, modules: readonly string[]): void {
    const { failed } = this.#habitOf(environment)
    if (failed.size < MAX_REFUSED) failed.add(modules.join())
  }

  /**
   * Records a run that succeeded.
   * @returns the modules to preload from now on, if they changed.
   */
  note(environment: Environment, run: FinishedRun): readonly string[] | undefined {
    const habit = this.#habitOf(environment)
    habit.runs += 1
    habit.last.push(this.#usedBy(run, environment, habit))
    if (habit.last.length > REMEMBERED) habit.last.shift()
    if (habit.runs !== REMEMBERED && habit.runs % PERIOD !== 0) return undefined
    const modules = chooseModules(habit)
    for (const name of habit.hidden) if (!modules.includes(name)) habit.hidden.delete(name)
    if (modules.length === 0 || habit.failed.has(modules.join())) return undefined
    return modules.join() === this.modulesFor(environment).join() ? undefined : modules
  }

  /**
   * The modules that a run used. A preloaded one is not in `imported`; it counts if a line of the script imports it. No line
   * imports the hidden ones, so these always count.
   */
  #usedBy({ script, imported }: FinishedRun, environment: Environment, { hidden }: Habit): readonly string[] {
    const known = new Set(environment.modules)
    const lines = importedModules(script)
    const isNamed = (name: string): boolean => lines.some((line) => isWithin(line, name) || isWithin(name, line))
    const loaded = imported.filter((name) => known.has(name.split('.', 1)[0] ?? ''))
    for (const name of loaded) if (!isNamed(name)) hidden.add(name)
    const ahead = this.modulesFor(environment).filter((name) => hidden.has(name) || isNamed(name))
    return [...new Set([...loaded, ...ahead])]
  }

  #habitOf({ key }: Environment): Habit {
    const habit = this.#habits.get(key) ?? {
      runs: 0,
      last: [],
      hidden: new Set(),
      refused: new Set(),
      failed: new Set(),
    }
    this.#habits.set(key, habit)
    return habit
  }
}

function chooseModules({ last, refused }: Habit): readonly string[] {
  const counts = new Map<string, number>()
  for (const name of last.flat()) counts.set(name, (counts.get(name) ?? 0) + 1)
  const often = [...counts].filter(([name, count]) => count >= NEEDED && !refused.has(name)).map(([name]) => name)
  // Loading a module also loads its parent packages.
  const lowest = often.filter((name) => !often.some((other) => other !== name && isWithin(other, name)))
  return lowest.slice(0, MAX_MODULES).toSorted()
}

/** True for a module itself and for those below it. */
function isWithin(name: string, above: string): boolean {
  // Allocates no string, because a hostile script can cause many calls.
  return name.startsWith(above) && (name.length === above.length || name[above.length] === '.')
}
