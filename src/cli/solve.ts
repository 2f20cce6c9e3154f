import { createSandglass, type ToolExecutionResult } from '../index.ts'
import type { JournalStore } from '../journal/index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { exitCodeOfRun } from './exit-codes.ts'
import { journalPlace, openJournal } from './journal-flag.ts'
import { modelOf } from './model-flag.ts'
import { sandboxFlags } from './options.ts'
import { solveEventLine, solveLine } from './solve-line.ts'
import { solveRequest } from './solve-request.ts'
import { SolveTeller, type Teller } from './solve-teller.ts'
import { toolsOf } from './tools-file.ts'
import { reworded } from './wording.ts'

/** `sandglass solve`: a model works a task off by writing Python. Resolves to the exit code. */
export async function solve(given: Given, context: Context): Promise<number> {
  const { options, policy } = sandboxFlags(given)
  const place = journalPlace(given, context.env)
  const { task, options: asked } = await solveRequest(given, context)
  const tools = await toolsOf(given, context)
  const model = await modelOf(given, context.env)
  const journal = openJournal(place)
  const asLines = given.has('--json') || given.has('--events')
  const teller = asLines ? lineTeller(given, context) : new SolveTeller(context, place.flag)
  try {
    context.signal.throwIfAborted()
    const sandglass = await createSandglass({ ...options, poolSize: 1, maxOverflow: 0, signal: context.signal })
    let result: ToolExecutionResult | undefined
    try {
      const events = sandglass.solveStream(task, {
        ...asked,
        model: model.call,
        hide: model.hide,
        journal,
        ...(policy === undefined ? {} : { policy }),
        ...(tools === undefined ? {} : { tools }),
        signal: context.signal,
      })
      for await (const event of events) {
        if (event.type === 'event') await teller.event(event.event)
        else result = event.result
      }
    } finally {
      await sandglass.close()
    }
    if (result === undefined) throw new Error('the run ended without a result')
    await teller.result(result.record, await isStored(journal, result.record.runId))
    return exitCodeOfRun(result.record.status)
  } catch (error) {
    throw reworded(error, 'flags')
  } finally {
    await teller.end()
    await journal.close()
  }
}

/** Whether there is something to show: a journal that took nothing has no such run. */
async function isStored(journal: JournalStore, runId: string): Promise<boolean> {
  try {
    return (await journal.read(runId)).length > 0
  } catch {
    return false
  }
}

function lineTeller(given: Given, { stdout }: Context): Teller {
  return {
    async event(event) {
      if (given.has('--events')) await stdout.line(solveEventLine(event))
    },
    result: (record) => stdout.line(solveLine(record)),
    end: async () => {},
  }
}
