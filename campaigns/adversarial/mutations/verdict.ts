import { CONTROL, type TestSelection, type Mutation } from './mutation.ts'
import { isMeant, type Trial, type TriedTest } from './trial.ts'

/** The verdict on one mutation. */
export interface Verdict {
  /** The tests about the defence that failed, as `suite: title`. */
  readonly noticed: readonly string[]
  /** The reason why the trial proves nothing; undefined when it is a proof. */
  readonly problem: string | undefined
}

/** A mutation is noticed when a test about its defence fails, while harmless scripts still pass. */
export function verdictOn(
  { selected }: Pick<Mutation, 'selected'>,
  { tests }: Trial,
  control: TestSelection = CONTROL,
): Verdict {
  const controls = tests.filter((test) => isMeant(test, control))
  const noticed = tests
    .filter((test) => !test.passed && selected.some((one) => isMeant(test, one)))
    .map(nameOf)
    .toSorted()
  return { noticed, problem: problemOf(controls, noticed) }
}

/** The reason why an unmutated copy cannot be the baseline; undefined when it can. */
export function problemOfBaseline(selections: readonly TestSelection[], { tests }: Trial): string | undefined {
  const failed = tests.filter(({ passed }) => !passed).map(nameOf)
  if (failed.length > 0) return `fails without a mutation: ${failed.join('; ')}`
  // A title without a test would look like a test that notices nothing.
  const absent = selections.flatMap(({ suite, titles }) =>
    titles
      .filter((words) => !tests.some((test) => isMeant(test, { suite, titles: [words] })))
      .map((words) => `${suite}: ${words}`),
  )
  return absent.length === 0 ? undefined : `no test that ran has these words: ${[...new Set(absent)].join('; ')}`
}

/** A test as the table and the record name it. */
export function nameOf({ suite, title }: Pick<TriedTest, 'suite' | 'title'>): string {
  return `${suite}: ${title}`
}

function problemOf(controls: readonly TriedTest[], noticed: readonly string[]): string | undefined {
  if (controls.length === 0) return 'no control was run'
  const broken = controls.filter(({ passed }) => !passed).map(nameOf)
  if (broken.length > 0) return `more than the defence is gone: ${broken.join('; ')}`
  return noticed.length === 0 ? 'no test notices' : undefined
}
