import { readdirSync } from 'node:fs'
import type { CodeAgent, CodeAgentState, PythonExecutorOptions } from '../code-agent/index.ts'
import { messageOf, SandglassError } from '../errors/index.ts'
import { type LLMCaller, ModelError } from '../llm/index.ts'
import { type TaskStatus, TASK_OUTCOMES } from '../outcomes/index.ts'
import type { Reviewer } from '../review/index.ts'
import { agentPlace, type AgentPlace, executorFor, keepIfBegun, copyTaskFiles, openThread } from './agent-place.ts'
import { CallApprovals } from './approve-calls.ts'
import type { Given } from './args.ts'
import { type Context, supportsAnsi, note } from './context.ts'
import { UsageError } from './failure.ts'
import { LiveLine } from './live-line.ts'
import { modelOf } from './model-flag.ts'
import { parseSandboxFlags } from './options.ts'
import { reviewOf } from './review.ts'
import { RunReporter } from './run-reporter.ts'
import { shellWord } from './shell-word.ts'
import { givenToolsOf } from './tools-file.ts'
import { reword } from './wording.ts'

/** The end of an agent's work on a message. */
interface AgentEnd {
  readonly status: TaskStatus
  readonly answer: string | null
  readonly error: string | null
}

/** The figures of one call of the command. */
interface Figures {
  readonly models: Set<string>
  promptTokens: number
  completionTokens: number
  scripts: number
  toolCalls: number
}

/** `sandglass agent`: a model works on a task with scripts, and a person decides about each. Resolves to the exit code. */
export async function agent(given: Given, context: Context): Promise<number> {
  const started = performance.now()
  const { options } = parseSandboxFlags(given, context.engines)
  const place = agentPlace(given, context.env)
  const model = await modelOf(given, context.env, 'agent')
  const asLines = given.has('--json')
  let doing: string | undefined = 'starting'
  const live = new LiveLine(context.stderr, supportsAnsi(context) && !asLines, () => doing)
  const reviewing = reviewOf(given, context, (text) => live.write(context.stderr, text), 'always')
  const tools = await givenToolsOf(given, context)
  const toContinue = `to continue: ${resumeCommand(given, place.thread)}`
  const figures: Figures = { models: new Set(), promptTokens: 0, completionTokens: 0, scripts: 0, toolCalls: 0 }
  // The answer alone goes to stdout.
  const reporter = new RunReporter({ ...context, stdout: context.stderr }, live, { path: 'script', text: '' })
  const onEvent: PythonExecutorOptions['onEvent'] = async (event) => {
    if (event.type === 'started') {
      figures.scripts += 1
      doing = 'running the script'
    }
    if (event.type === 'tool_call') figures.toolCalls += 1
    if (!asLines) await reporter.event(event)
  }
  const review: Reviewer = async (proposal, about) => {
    doing = undefined
    return reviewing === undefined ? { decision: 'accept' } : reviewing.review(proposal, about)
  }
  let end: AgentEnd
  try {
    await copyTaskFiles(given, place, context.signal)
    await note(context, `agent ${place.thread}`)
    const { createCodeAgent } = await import('../code-agent/index.ts')
    const approver = reviewing?.approver ?? new CallApprovals(context)
    const onPending: PythonExecutorOptions['onPending'] = async (calls) => {
      doing = undefined
      await approver.onPending(calls)
      doing = 'running the script'
    }
    await using executor = await executorFor(options, { workspaceDir: place.files, onEvent, onPending })
    approver.sandglass = executor
    const codeAgent = await createCodeAgent({
      model: countCalls(model.call, figures, () => (doing = 'asking the model')),
      ...(tools === undefined ? {} : { tools }),
      executor,
      checkpointer: await openThread(place),
    })
    end = endOf(await converse(codeAgent, place, review, given.has('--take-over'), context))
  } catch (error) {
    const failed = endAfter(error, context.signal)
    if (failed === undefined) {
      if (keepIfBegun(place)) await note(context, toContinue)
      throw reword(error, 'flags')
    }
    end = failed
  } finally {
    doing = undefined
    reviewing?.end()
    await live.end()
  }
  if (context.isStdoutClosed()) return TASK_OUTCOMES[end.status].exitCode
  if (asLines) await context.stdout.line(lineOf(end, place.thread, figures, performance.now() - started))
  else if (end.answer !== null) await live.pass(context.stdout, `${end.answer.trimEnd()}\n`)
  if (end.error !== null) await note(context, end.error)
  if (keepIfBegun(place)) {
    if (readdirSync(place.files).length > 0) await note(context, `files: ${place.files}`)
    await note(context, toContinue)
  }
  return TASK_OUTCOMES[end.status].exitCode
}

/** Sends the task, or continues, and has each proposal answered until the end. */
async function converse(
  codeAgent: CodeAgent,
  { thread, task, isResumed }: AgentPlace,
  review: Reviewer,
  takeOver: boolean,
  context: Context,
): Promise<CodeAgentState> {
  const { signal } = context
  const on = { thread, signal }
  let state = isResumed ? await codeAgent.resume({ ...on, takeOver }) : await codeAgent.start(task ?? '', on)
  if (isResumed && task !== undefined) {
    if (state.status === 'waiting')
      throw new UsageError('invalid_request', `--resume ${thread}: a script waits for a decision; leave out the TASK`)
    state = await codeAgent.start(task, on)
  }
  while (state.status === 'waiting' && state.proposal !== null) {
    // The packages that the model names are among the dependencies.
    const { libraries: _, afterUncertainRun, ...proposal } = state.proposal
    if (afterUncertainRun)
      await note(context, 'the host ended while the script before this one ran: it may have run, in whole or in part')
    state = await codeAgent.answer({ ...(await review(proposal, { signal })), proposal: proposal.id }, on)
  }
  return state
}

/** The same model, with its calls counted. */
function countCalls(call: LLMCaller, figures: Figures, onCall: () => void): LLMCaller {
  return async (prompt, context) => {
    onCall()
    const result = await call(prompt, context)
    if (typeof result === 'string') return result
    if (result.model !== undefined) figures.models.add(result.model)
    figures.promptTokens += result.promptTokens ?? 0
    figures.completionTokens += result.completionTokens ?? 0
    return result
  }
}

function endOf({ status, answer, records, thread }: CodeAgentState): AgentEnd {
  switch (status) {
    case 'answered':
      return { status: 'completed', answer, error: null }
    case 'turns-exhausted':
      return { status: 'retries-spent', answer, error: 'the model gave no answer in the turns that it has' }
    case 'rejected': {
      const { by = null, text = null } = records.findLast((record) => record.type === 'decision') ?? {}
      return { status: 'cancelled', answer, error: `rejected${by === null ? '' : ` by ${by}`}: ${text ?? 'no reason'}` }
    }
    case 'waiting':
    case 'unfinished':
    case 'idle':
      return { status: 'infrastructure', answer, error: `the agent ${thread} is ${status}` }
  }
}

/** The end of work that was cut short; undefined for an error of the command itself. */
function endAfter(error: unknown, signal: AbortSignal): AgentEnd | undefined {
  if (signal.aborted) return { status: 'cancelled', answer: null, error: messageOf(signal.reason) }
  if (error instanceof ModelError) return { status: 'model-failed', answer: null, error: messageOf(error) }
  if (error instanceof SandglassError || error instanceof TypeError) return undefined
  return { status: 'infrastructure', answer: null, error: messageOf(error) }
}

/** The last line of `--json`: that of `solve`. */
function lineOf(end: AgentEnd, thread: string, figures: Figures, ms: number): Record<string, unknown> {
  return {
    v: 1,
    type: 'solve_result',
    run_id: thread,
    status: end.status,
    success: end.status === 'completed',
    final_data: end.answer,
    error: end.error,
    partial: null,
    mode: 'interactive',
    attempts: figures.scripts,
    steps: figures.scripts,
    models: [...figures.models],
    prompt_tokens: figures.promptTokens,
    completion_tokens: figures.completionTokens,
    cost: null,
    tool_calls: figures.toolCalls,
    duration_ms: Math.round(ms * 1000) / 1000,
    warnings: [],
    files: [],
    displays: [],
  }
}

const LIMITS = ['--timeout', '--max-tool-wait', '--memory', '--cpus', '--pids', '--max-output']
const AGAIN = ['--model', '--model-url', '--tools', '--with', '--review', '--engine', '--image', ...LIMITS]

/** The command that continues, with the flags of this one that it needs again. */
function resumeCommand(given: Given, thread: string): string {
  const again = AGAIN.flatMap((flag) => given.all(flag).map((value) => `${flag} ${shellWord(value)}`))
  return ['sandglass agent --resume', thread, ...again].join(' ')
}
