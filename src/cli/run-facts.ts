import type { AttemptRecord, Repetition, RunRecord, SandboxRecord } from '../journal/index.ts'
import { countText, truncateAndCount } from '../support/index.ts'
import { msText, plural, whenText } from './figures.ts'
import { moreText, nameText } from './foreign-text.ts'
import { attemptsOf } from './solve-line.ts'

/** Maximum characters of the reason for a second run. */
const MAX_RERUN = 200
const MAX_FILES = 20
const MAX_REVIEWS = 20
const MAX_REASON = 2000

/** A fact and its name, for a list of facts. */
export type Fact = readonly [name: string, text: string]

/** The facts of a task, without its text and its outcome. */
export function runFacts(record: RunRecord, missing: number): Fact[] {
  const { models, mode, policy, tools, maxRetries, maxSteps, totalToolCalls, durationMs, traceId } = record
  const rounds = plural(attemptsOf(record).length, 'attempt')
  const budget = budgetText(record.budget)
  return [
    ['model', models.length === 0 ? 'unknown' : models.map(nameText).join(', ')],
    ['mode', `${mode}, ${atMost(maxRetries, maxSteps)}, policy ${nameText(policy)}`],
    ...(budget === '' ? [] : [['budget', budget] as const]),
    ['tools', tools.length === 0 ? 'none' : tools.map(nameText).join(', ')],
    ['took', [rounds, tokensText(record), plural(totalToolCalls, 'tool call'), msText(durationMs)].join(', ')],
    ...(record.cost === null ? [] : [['cost', String(record.cost)] as const]),
    ['started', `${whenText(record.startedAt)} UTC`],
    ...(traceId === null ? [] : [['trace', nameText(traceId)] as const]),
    ...(missing === 0 ? [] : [['damaged', `${plural(missing, 'event')} of this journal cannot be read`] as const]),
  ]
}

/** The facts of an attempt: prompt, model, sandbox, time and files. */
export function attemptFacts(attempt: AttemptRecord): Fact[] {
  const { prompt, generation, cost, sandbox, executionMs, rerun, files, reviews } = attempt
  return [
    ...(prompt === null ? [] : [['prompt', `${countText(prompt.chars)} characters`] as const]),
    ...(generation === null ? [] : [['answer', generationText(generation)] as const]),
    ...(cost === null ? [] : [['cost', String(cost)] as const]),
    ...reviews.slice(0, MAX_REVIEWS).map((review) => ['review', reviewText(review)] as const),
    ...(sandbox === null ? [] : [['sandbox', sandboxText(sandbox)] as const]),
    ...(executionMs === null ? [] : [['script', `ran for ${msText(executionMs)}`] as const]),
    ...(files.length === 0 ? [] : [['files', filesText(files)] as const]),
    ...(rerun === null ? [] : [['run again', truncateAndCount(rerun, MAX_RERUN)] as const]),
  ]
}

function reviewText({ decision, script }: AttemptRecord['reviews'][number]): string {
  if (decision === null) return 'nobody has decided'
  const { by, text, script: own } = decision
  const who = by === null ? '' : ` by ${nameText(by)}`
  const replaced = own === null || own === script ? '' : ', with a script of the reviewer'
  const reason = text === null ? '' : `: ${truncateAndCount(text, MAX_REASON)}`
  return `${nameText(decision.decision)}${who} after ${msText(decision.waitedMs)}${replaced}${reason}`
}

function filesText(files: AttemptRecord['files']): string {
  const named = files.slice(0, MAX_FILES).map(({ path, size }) => `${nameText(path)} (${plural(size, 'byte')})`)
  return [...named, ...moreText(files.length - MAX_FILES)].join('\n')
}

/** The end of an attempt, with its time: `failed after 2.31 s`. */
export function endText({ status, durationMs }: AttemptRecord): string {
  return `${nameText(status ?? 'unfinished')}${durationMs === null ? '' : ` after ${msText(durationMs)}`}`
}

const REPETITIONS: Readonly<Record<Repetition, string>> = {
  'same-result': 'the same result as the previous step',
  'same-script': 'the same script as the previous one',
  'same-error': 'the same error as the previous one',
  cycle: 'alternates between two mistakes',
}

/** The text for a repetition. */
export function repetitionText(repetition: Repetition): string {
  return Object.hasOwn(REPETITIONS, repetition) ? REPETITIONS[repetition] : repetition
}

function atMost(maxRetries: number, maxSteps: number | null): string {
  const attempts = `at most ${plural(maxRetries + 1, 'attempt')}`
  return maxSteps === null ? attempts : `at most ${plural(maxSteps, 'step')}, of ${attempts} each`
}

function budgetText({ tokens, toolCalls: calls, wallMs, cost }: RunRecord['budget']): string {
  return [
    ...(tokens === null ? [] : [`${countText(tokens)} tokens`]),
    ...(calls === null ? [] : [plural(calls, 'tool call')]),
    ...(wallMs === null ? [] : [msText(wallMs)]),
    ...(cost === null ? [] : [`a cost of ${cost}`]),
  ].join(', ')
}

function tokensText({ totalPromptTokens, totalCompletionTokens }: RunRecord): string {
  return `${countText(totalPromptTokens)} + ${countText(totalCompletionTokens)} tokens`
}

function generationText({
  model,
  promptTokens,
  completionTokens,
  latencyMs,
}: NonNullable<AttemptRecord['generation']>): string {
  const tokens =
    promptTokens === null && completionTokens === null
      ? ''
      : `, ${promptTokens === null ? '?' : countText(promptTokens)} + ${completionTokens === null ? '?' : countText(completionTokens)} tokens`
  return `in ${msText(latencyMs)}${tokens}${model === null ? '' : `, ${nameText(model)}`}`
}

function sandboxText({ engine, level, python, use, network, limitsEnforced: limits }: SandboxRecord): string {
  const held = limits.length === 0 ? 'no limit enforced' : `limits ${limits.map(nameText).join(', ')}`
  return `${nameText(engine)} (${nameText(level)}), Python ${nameText(python)}, its ${ordinal(use)} script, network ${nameText(network)}, ${held}`
}

function ordinal(count: number): string {
  const suffix = Math.floor(count / 10) % 10 === 1 ? undefined : ['th', 'st', 'nd', 'rd'][count % 10]
  return `${countText(count)}${suffix ?? 'th'}`
}
