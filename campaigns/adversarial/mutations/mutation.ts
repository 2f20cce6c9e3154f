/** One defence, and how a copy of the tree loses it. The package itself has no switch that weakens anything. */
export interface Mutation {
  readonly name: string
  /** The defence that is removed, in the words of the design. */
  readonly defence: string
  /** The behaviour of the patched copy. */
  readonly instead: string
  /** Everything that has to be changed; each piece stands exactly once in its file. */
  readonly patches: readonly Patch[]
  /** A second defence that would stop the attack, and is removed as well. */
  readonly doubled?: string
  /** The tests that are about this defence: only they are run, beside the control, and only they can notice. */
  readonly selected: readonly TestSelection[]
  /** One or two of those that notice, quick ones: the short form runs them alone. */
  readonly quick: readonly TestSelection[]
}

/** An exact replacement in one file. */
export interface Patch {
  /** Below the root of the tree. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** Tests of one suite of `campaigns/adversarial/suites`. */
export interface TestSelection {
  readonly suite: Suite
  /** Words of their full titles; a test with any of them is meant. */
  readonly titles: readonly string[]
}

/** The suites that the mutations are tried with. */
export const SUITES = ['cases', 'supervisor', 'between-runs', 'defences', 'fresh'] as const
/** One of them. */
export type Suite = (typeof SUITES)[number]

/** The tests that must pass in every mutated tree: a copy in which nothing runs proves nothing about a defence. */
export const CONTROL: TestSelection = { suite: 'cases', titles: ['benign-control'] }
/** The same for the short form. */
export const SHORT_CONTROL: TestSelection = { suite: 'cases', titles: ['OK-013'] }

/**
 * The text of a file with one patch in it.
 * @throws Error when what is to be replaced is not there, or more than once: the code moved, and the mutation with it.
 */
export function patched(text: string, { file, from, to }: Patch): string {
  const count = text.split(from).length - 1
  if (count !== 1) throw new Error(`${file} holds this ${count} times and must hold it once:\n${from}`)
  return text.replace(from, () => to)
}
