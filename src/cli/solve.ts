import type { ToolExecutionResult } from '../index.ts'
import type { JournalStore } from '../journal/index.ts'
import type { Given } from './args.ts'
import type { Context } from './context.ts'
import { TASK_OUTCOMES } from '../outcomes/index.ts'
import { EXIT } from './exit-codes.ts'
import { displayFiles } from './display-files.ts'
import { InstallLine } from './install-line.ts'
import { journalPlace, openJournal } from './journal-flag.ts'
import { modelOf } from './model-flag.ts'
import { parseSandboxFlags } from './options.ts'
import { reviewOf } from './review.ts'
import { saveFiles, savingOf } from './save.ts'
import { solveEventLine, solveLine } from './solve-line.ts'
import { solveRequest } from './solve-request.ts'
import { SolveReporter, type Reporter } from './solve-reporter.ts'
import { startSandglass } from './start.ts'
import { toolsOf } from './tools-file.ts'
import { reword } from './wording.ts'

/** `sandglass solve`: a model solves a task by writing Python. Resolves to the exit code. */
export async function solve(given: Given, context: Context): Promise<number> {
  const { options, policy } = parseSandboxFlags(given, context.engines)
  const reviewing = reviewOf(given, context, (text) => reporter.show(text))
  const place = journalPlace(given, context.env)
  const { task, options: asked } = await solveRequest(given, context)
  const tools = await toolsOf(given, context)
  const model = await modelOf(given, context.env)
  const saving = savingOf(given)
  const journal = openJournal(place)
  const asLines = given.has('--json') || given.has('--events')
  await using installing = new InstallLine(context, { draws: asLines })
  const reporter = asLines
    ? lineReporter(given, context)
    : new SolveReporter(context, place.flag, () => installing.text)
  try {
    context.signal.throwIfAborted()
    const environments = { onProgress: installing.onProgress }
    const forAll = { ...options, environments, poolSize: 1, maxOverflow: 0 }
    const sandglass = await startSandglass(forAll, context, reviewing?.approver)
    let result: ToolExecutionResult | undefined
    try {
      const events = sandglass.solveStream(task, {
        ...asked,
        model: model.call,
        hide: model.hide,
        journal,
        ...(policy === undefined ? {} : { policy }),
        ...(tools === undefined ? {} : { tools }),
        ...(reviewing === undefined ? {} : { review: reviewing.review, onEvent: reviewing.onEvent }),
        signal: reviewing?.signal ?? context.signal,
      })
      for await (const event of events) {
        if (event.type === 'event') await reporter.event(event.event)
        else if (event.type === 'file') reporter.file(event)
        else result = event.result
      }
    } finally {
      await sandglass.close()
    }
    if (result === undefined) throw new Error('the task ended without a result')
    const problems = saving === undefined ? [] : saveFiles(saving, [...result.files, ...displayFiles(result.displays)])
    await reporter.result(result, problems, await isStored(journal, result.record.runId))
    const { exitCode } = TASK_OUTCOMES[result.record.status]
    return exitCode === EXIT.ok && problems.length > 0 ? EXIT.usage : exitCode
  } catch (error) {
    throw reword(error, 'flags')
  } finally {
    reviewing?.end()
    await reporter.end()
    await journal.close()
  }
}

/** True if the journal stored the task. */
async function isStored(journal: JournalStore, runId: string): Promise<boolean> {
  try {
    return (await journal.read(runId)).length > 0
  } catch {
    return false
  }
}

function lineReporter(given: Given, { stdout }: Context): Reporter {
  return {
    async event(event) {
      if (given.has('--events')) await stdout.line(solveEventLine(event))
    },
    show: async () => {},
    file: () => {},
    result: (result, problems) => stdout.line(solveLine(result, problems)),
    end: async () => {},
  }
}
