import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Copy } from './copy.ts'
import { type TestSelection, type Suite, SUITES } from './mutation.ts'

/** The results of the tests of a copy. */
export interface Trial {
  readonly tests: readonly TriedTest[]
  /** The output of vitest, for failures that nothing else explains. */
  readonly output: string
}

/** One test that was run. */
export interface TriedTest {
  readonly suite: Suite
  /** Its full title, with those of its groups. */
  readonly title: string
  readonly passed: boolean
  /** The failure message. */
  readonly why?: string
}

/** The parts of vitest's JSON report that are read. */
interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly {
      readonly ancestorTitles: readonly string[]
      readonly title: string
      readonly status: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

/** More than the slowest mutation takes on a busy machine. A longer trial is killed. */
const TRIAL_MS = 15 * 60_000

/** The projects of the suites. */
const PROJECTS = ['waiting', 'unit', 'library', 'sandbox', 'slow', 'campaign'].map((name) => `--project=${name}`)

/** Runs the selected tests in a copy, on the engine `local`. */
export async function tryOut(copy: Copy, selections: readonly TestSelection[], signal?: AbortSignal): Promise<Trial> {
  const report = join(copy.root, 'report.json')
  const output = await runVitest(
    copy,
    [
      'run',
      ...PROJECTS,
      ...new Set(selections.map(({ suite }) => SUITES[suite])),
      '--testNamePattern',
      selections.flatMap(({ titles }) => titles.map(literal)).join('|'),
      '--reporter=dot',
      '--reporter=json',
      `--outputFile.json=${report}`,
    ],
    signal,
  )
  return {
    tests: testsOf(report, output).filter((test) => selections.some((selected) => isMeant(test, selected))),
    output,
  }
}

/** Lists all tests of the suites that run on mutated copies, without running them. */
export async function listTests(copy: Copy, signal?: AbortSignal): Promise<Pick<TriedTest, 'suite' | 'title'>[]> {
  const list = join(copy.root, 'list.json')
  const output = await runVitest(copy, ['list', ...PROJECTS, ...Object.values(SUITES), `--json=${list}`], signal)
  const listed = read<readonly { name: string; file: string }[]>(list, output)
  return listed.map(({ name, file }) => ({ suite: suiteOf(file), title: titleOf(name.split(' > ')) }))
}

/** Returns true when a selection includes a test. */
export function isMeant({ suite, title }: Pick<TriedTest, 'suite' | 'title'>, selected: TestSelection): boolean {
  return suite === selected.suite && selected.titles.some((words) => title.includes(words))
}

async function runVitest(copy: Copy, args: readonly string[], signal?: AbortSignal): Promise<string> {
  mkdirSync(copy.state, { recursive: true, mode: 0o755 })
  const vitest = join(copy.root, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, ...args], {
    cwd: copy.root,
    env: {
      ...withoutVitest(process.env),
      SANDGLASS_STATE_DIR: copy.state,
      SANDGLASS_TEST_REQUIRE: 'local',
      SANDGLASS_TEST_ENGINES: 'local',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const end = (): boolean => child.kill('SIGTERM')
  const timer = setTimeout(end, TRIAL_MS)
  signal?.addEventListener('abort', end)
  if (signal?.aborted === true) end()
  await once(child, 'close')
  clearTimeout(timer)
  signal?.removeEventListener('abort', end)
  signal?.throwIfAborted()
  return output
}

/** Removes the variables of an outer vitest, which would make the inner one a part of it. */
function withoutVitest(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !/^(VITEST|VITE_|TEST$|NODE_ENV$|SANDGLASS_TEST_RUN$)/.test(name)),
  )
}

function testsOf(path: string, output: string): TriedTest[] {
  const report = read<Report>(path, output)
  return report.testResults.flatMap(({ name, assertionResults }) => {
    const suite = suiteOf(name)
    return assertionResults
      .filter(({ status }) => status === 'passed' || status === 'failed')
      .map(({ ancestorTitles, title, status, failureMessages }) => ({
        suite,
        title: titleOf([...ancestorTitles, title]),
        passed: status === 'passed',
        why: failureMessages.join('\n'),
      }))
  })
}

function read<T>(path: string, output: string): T {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch {
    throw new Error(`vitest ended without a report:\n${output.slice(-4000)}`)
  }
}

function suiteOf(path: string): Suite {
  const found = (Object.keys(SUITES) as Suite[]).find((suite) => path.endsWith(SUITES[suite]))
  if (found === undefined) throw new Error(`${path} is the file of no suite`)
  return found
}

/** The outermost group only names suite and engine. */
function titleOf(names: readonly string[]): string {
  return (names.length > 1 ? names.slice(1) : names).join(' > ')
}

function literal(words: string): string {
  return words.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
}
