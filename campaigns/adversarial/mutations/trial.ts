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

/** A test as vitest reports it. */
export interface RanTest {
  readonly file: string
  /** The titles of its groups and its own. */
  readonly name: string
  readonly passed: boolean
  readonly why: string
}

/** The projects of the suites. */
export const PROJECTS = ['waiting', 'unit', 'library', 'sandbox', 'slow', 'paired', 'campaign'] as const

/** Lists all tests of the suites that run on mutated copies, without running them. */
export async function listTests(copy: Copy, signal?: AbortSignal): Promise<Pick<TriedTest, 'suite' | 'title'>[]> {
  const list = join(copy.root, 'list.json')
  const output = await runVitest(
    copy,
    ['list', ...PROJECTS.map((name) => `--project=${name}`), ...Object.values(SUITES), `--json=${list}`],
    signal,
  )
  const listed = read<readonly { name: string; file: string }[]>(list, output)
  return listed.map(({ name, file }) => ({ suite: suiteOf(file), title: titleOf(name.split(' > ')) }))
}

/** Returns true when a selection includes a test. */
export function isMeant({ suite, title }: Pick<TriedTest, 'suite' | 'title'>, selected: TestSelection): boolean {
  return suite === selected.suite && selected.titles.some((words) => title.includes(words))
}

/** The environment of a vitest that tests a copy, on the engine `local`. */
export function environmentOf(copy: Copy): NodeJS.ProcessEnv {
  return {
    ...withoutVitest(process.env),
    SANDGLASS_STATE_DIR: copy.state,
    SANDGLASS_TEST_REQUIRE: 'local',
    SANDGLASS_TEST_ENGINES: 'local',
  }
}

/** A test as the suites name it. */
export function triedTest({ file, name, passed, why }: RanTest): TriedTest {
  return { suite: suiteOf(file), title: titleOf(name.split(' > ')), passed, why }
}

async function runVitest(copy: Copy, args: readonly string[], signal?: AbortSignal): Promise<string> {
  mkdirSync(copy.state, { recursive: true, mode: 0o755 })
  const vitest = join(copy.root, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, ...args], {
    cwd: copy.root,
    env: environmentOf(copy),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const end = (): boolean => child.kill('SIGTERM')
  signal?.addEventListener('abort', end)
  if (signal?.aborted === true) end()
  await once(child, 'close')
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
