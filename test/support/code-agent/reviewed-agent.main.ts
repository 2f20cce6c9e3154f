/**
 * A code agent in a process of its own, for tests that kill it: `reviewed-agent.main.ts STORE THREAD REVIEWER RUNS [PACE]`.
 * The reviewer `propose` answers nothing: it ends at the first proposal.
 * It says on stdout what it does, and each script that runs says so in the file RUNS, which a tool of the host writes.
 */
import { once } from 'node:events'
import { appendFileSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { type CodeAgentState, createCodeAgent, LocalPythonExecutor } from '../../../src/code-agent/index.ts'
import { defineTool, SandglassError } from '../../../src/index.ts'
import { openSaver } from './savers.ts'

const [store = '', thread = '', reviewer = '', runs = '', pace = ''] = process.argv.slice(2)

/** The longest time that a hesitant reviewer takes. */
const MAX_HESITATION_MS = 100
/** The number of scripts before the answer. */
const SCRIPTS = 2

const note = defineTool({
  name: 'note',
  description: 'Notes that the script runs.',
  input: z.object({ script: z.string() }),
  output: z.string(),
  execute: async ({ script }) => {
    appendFileSync(runs, `${thread} ${script}\n`)
    say(`ran ${script}`)
    if (pace === 'slow') await sleep(60_000)
    return script
  },
})

/** Writes the scripts of a thread one after the other. Each has a name that no other call of the model has. */
function answerTo(prompt: string): string {
  const done = prompt.split('NOTED').length - 1 + prompt.split('It may have run').length - 1
  if (done >= SCRIPTS) return 'All is done.'
  const name = `script-${done + 1}`
  return `I run ${name}.<execution-code>print("NOT" + "ED", note(script="${name}"))</execution-code>`
}

/** With the pace `together`, all answers wait for it. */
const word = pace === 'together' ? once(process.stdin, 'data') : undefined
await using saver = await openSaver(store)
await using executor = new LocalPythonExecutor()
const agent = await createCodeAgent({
  model: async (prompt) => answerTo(prompt),
  tools: [note],
  executor,
  checkpointer: saver.checkpointer,
})
try {
  let state = await agent.state({ thread })
  say(`found ${state.status}`)
  if (state.status === 'idle') state = await agent.start('Do it.', { thread })
  if (state.status === 'unfinished') state = await agent.resume({ thread })
  while (state.status === 'waiting' && reviewer !== 'propose') state = await accept(state)
  say(`${state.status} ${JSON.stringify(state.records.map(summaryOf))}`)
} catch (error) {
  if (!(error instanceof SandglassError)) throw error
  say(`error ${error.code} ${error.message}`)
}

async function accept({ proposal }: CodeAgentState): Promise<CodeAgentState> {
  say(`proposed ${proposal?.id}`)
  if (pace === 'waits') await sleep(60_000)
  await word
  if (pace === 'hesitant') await sleep(Math.random() * MAX_HESITATION_MS)
  return agent.answer({ proposal: proposal?.id ?? '', decision: 'accept', by: reviewer }, { thread })
}

function summaryOf(record: CodeAgentState['records'][number]): string {
  return record.type === 'run' ? record.outcome : `${record.decision} by ${record.by}`
}

function say(line: string): void {
  writeSync(1, `${line}\n`)
}
