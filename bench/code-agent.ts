import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemorySaver } from '@langchain/langgraph'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { type Checkpointer, createCodeAgent, LocalPythonExecutor, parseReply } from '../src/code-agent/index.ts'
import type { RunEvent } from '../src/index.ts'
import { uv } from '../test/support/environments/fixture.ts'
import { PackageIndex } from '../test/support/environments/package-index.ts'
import { makeWheel } from '../test/support/environments/wheel.ts'
import { pause, summarize } from './measure.ts'
import { ms, type Row } from './row.ts'
import { createSandglass } from './subject.ts'

const ROUNDS = 60
const WARM_UP = 5
/** Nodes of the graph from a message to its answer: model, execution, model. */
const STEPS = 3
const SCRIPT = 'print(1)'

/** Measures the parser of replies, the time from an accepted proposal to its first output, and the time that the graph adds to a script. */
export async function codeAgent(): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  // Sandboxes with another uid must be able to read the packages.
  chmodSync(directory, 0o755)
  try {
    return [
      parsing(),
      await firstOutput(directory),
      await stepOf('memory', new MemorySaver()),
      await stepOf('a file of SQLite', SqliteSaver.fromConnString(join(directory, 'threads.sqlite'))),
    ]
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** A reply of 1 MB, most of it script. */
function parsing(): Row {
  const line = 'print("<b>", 1 & 2) # </execution>\n'
  const reply = `I look.<pip-dependencies-to-install>\nready\n</pip-dependencies-to-install><execution-code>\n${line.repeat(1_000_000 / line.length)}</execution-code>`
  const times = Array.from({ length: ROUNDS }, () => {
    const started = performance.now()
    const { kind } = parseReply(reply)
    if (kind !== 'code') throw new Error(`the reply is ${kind}`)
    return performance.now() - started
  })
  const { p50, max, n } = summarize(times.slice(WARM_UP))
  return {
    what: `parsing a reply of 1 MB, p50 (n=${n})`,
    figure: `${ms(p50)}, max ${ms(max)}`,
    bound: '<= 20 ms',
    met: p50 <= 20,
  }
}

/** Measures the time from the acceptance of a script with an installed package to its first output, compared with `sg.run`. */
async function firstOutput(directory: string): Promise<Row> {
  await using index = await PackageIndex.start(makeWheel({ name: 'ready' }))
  const environments = {
    index: index.address,
    excludeNewer: 'none',
    allow: ['ready'],
    ...('path' in uv && { uv: uv.path }),
  } as const
  const script = 'import ready\nprint(ready.VERSION, flush=True)\n'
  let seen = Promise.withResolvers<number>()
  const onEvent = ({ type }: RunEvent): void => {
    if (type === 'stdout') seen.resolve(performance.now())
  }
  await using executor = new LocalPythonExecutor({ environments, onEvent })
  await using sg = await createSandglass({
    engine: 'local',
    poolSize: 1,
    dependencies: ['ready'],
    environments: { ...environments, cacheDir: join(directory, 'cache') },
  })
  let calls = 0
  const agent = await createCodeAgent({
    model: async () =>
      (calls += 1) % 2 === 1
        ? `<pip-dependencies-to-install>ready</pip-dependencies-to-install><execution-code>${script}</execution-code>`
        : 'Done.',
    executor,
    checkpointer: SqliteSaver.fromConnString(join(directory, 'reviewed.sqlite')),
  })
  const added: number[] = []
  const alone: number[] = []
  for (let round = 0; round < ROUNDS + WARM_UP; round += 1) {
    const thread = String(round)
    const { proposal } = await agent.start('Go.', { thread })
    const accepted = await timed(() => agent.answer({ proposal: proposal?.id ?? '', decision: 'accept' }, { thread }))
    const run = await timed(() => sg.run(script, { onEvent }))
    if (round < WARM_UP) continue
    added.push(accepted - run)
    alone.push(run)
  }
  const { p50, p95, n } = summarize(added)
  return {
    what: `a proposal accepted, with an installed package, to the first output, over \`sg.run\`, p50 (n=${n})`,
    figure: `${ms(p50)}, p95 ${ms(p95)}, on top of ${ms(summarize(alone).p50)}`,
    bound: '<= 50 ms',
    met: p50 <= 50,
  }

  /** Milliseconds to the first output of a script. */
  async function timed(act: () => Promise<unknown>): Promise<number> {
    seen = Promise.withResolvers()
    await pause(5)
    const started = performance.now()
    await act()
    return (await seen.promise) - started
  }
}

async function stepOf(place: string, checkpointer: Checkpointer): Promise<Row> {
  await using executor = new LocalPythonExecutor()
  let calls = 0
  const agent = await createCodeAgent({
    model: async () => ((calls += 1) % 2 === 1 ? `<execution-code>${SCRIPT}</execution-code>` : 'Done.'),
    executor,
    checkpointer,
    review: 'never',
  })
  const added: number[] = []
  for (let round = 0; round < ROUNDS + WARM_UP; round += 1) {
    const started = performance.now()
    await executor.execute([], SCRIPT, [])
    const alone = performance.now()
    await pause(5)
    const begun = performance.now()
    await agent.start('Go.', { thread: String(round) })
    if (round >= WARM_UP) added.push((performance.now() - begun - (alone - started)) / STEPS)
    await pause(5)
  }
  const { p50, p95, n } = summarize(added)
  return {
    what: `a step of the code agent's graph, checkpointer in ${place}, p50 (n=${n})`,
    figure: `${ms(p50)}, p95 ${ms(p95)}`,
    bound: '<= 5 ms',
    met: p50 <= 5,
  }
}
