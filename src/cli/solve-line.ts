import type { ToolExecutionResult } from '../index.ts'
import type { JournalEvent, RunRecord } from '../journal/index.ts'
import { displayLine, fileLine } from './result-line.ts'
import { notSaved } from './save.ts'

/** The result of a task as one line of JSON (docs/cli.md). */
export function solveLine(
  { record, files, displays }: Pick<ToolExecutionResult, 'record' | 'files' | 'displays'>,
  problems: readonly string[],
): Record<string, unknown> {
  return {
    v: 1,
    type: 'solve_result',
    run_id: record.runId,
    status: record.status,
    success: record.success,
    final_data: record.finalData,
    error: record.error,
    partial: record.partial,
    mode: record.mode,
    attempts: attemptsOf(record).length,
    steps: record.steps.length,
    models: record.models,
    prompt_tokens: record.totalPromptTokens,
    completion_tokens: record.totalCompletionTokens,
    cost: record.cost,
    tool_calls: record.totalToolCalls,
    duration_ms: record.durationMs,
    warnings: notSaved(problems),
    files: files.map(fileLine),
    displays: displays.map(displayLine),
  }
}

/** An event of the journal as one line of JSON. */
export function solveEventLine(event: JournalEvent): Record<string, unknown> {
  return { v: 1, type: 'event', event }
}

/** Every attempt of a task, those of its steps included, in order. */
export function attemptsOf({ attempts, steps }: RunRecord): RunRecord['attempts'] {
  return [...attempts, ...steps.flatMap((step) => step.attempts)]
}
