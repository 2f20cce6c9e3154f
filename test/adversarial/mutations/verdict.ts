import { CONTROL, type Look, type Mutation } from './mutation.ts'
import { isMeant, type Trial, type TriedTest } from './trial.ts'

/** What a trial of one mutation says. */
export interface Verdict {
  /** The tests about the defence that failed, as `suite: title`. */
  readonly noticed: readonly string[]
  /** Why it is no proof, in words; undefined when it is one. */
  readonly problem: string | undefined
}

/** A mutation is noticed when a test about its defence fails, while scripts that attack nothing run as ever. */
export function verdictOn({ look }: Pick<Mutation, 'look'>, { tests }: Trial, control: Look = CONTROL): Verdict {
  const controls = tests.filter((test) => isMeant(test, control))
  const noticed = tests
    .filter((test) => !test.passed && look.some((one) => isMeant(test, one)))
    .map(nameOf)
    .toSorted()
  return { noticed, problem: problemOf(controls, noticed) }
}

/** Why an unmutated copy is no base to compare with; undefined when it is. */
export function problemOfBaseline(looks: readonly Look[], { tests }: Trial): string | undefined {
  const failed = tests.filter(({ passed }) => !passed).map(nameOf)
  if (failed.length > 0) return `fails without a mutation: ${failed.join('; ')}`
  // A title that no test has looks like one that notices nothing.
  const absent = looks.flatMap(({ suite, titles }) =>
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
