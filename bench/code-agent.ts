import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemorySaver } from '@langchain/langgraph'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { type Checkpointer, createCodeAgent, LocalPythonExecutor } from '../src/code-agent/index.ts'
import { pause, summarize } from './measure.ts'
import { ms, type Row } from './row.ts'

const ROUNDS = 60
const WARM_UP = 5
/** Nodes of the graph from a message to its answer: model, execution, model. */
const STEPS = 3
const SCRIPT = 'print(1)'

/** Measures the time that the graph of the code agent adds to a script, in turn with the script alone. */
export async function codeAgent(): Promise<Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  try {
    return [
      await stepOf('memory', new MemorySaver()),
      await stepOf('a file of SQLite', SqliteSaver.fromConnString(join(directory, 'threads.sqlite'))),
    ]
  } finally {
    rmSync(directory, { recursive: true, force: true })
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
